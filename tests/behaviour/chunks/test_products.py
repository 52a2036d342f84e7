"""PolynomialFeatures behind encoders of frames in chunks has the scores of the frame in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler

from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks._frames import blocks

rng = np.random.default_rng(0)
N = 9_001
FRAME = pd.DataFrame(
    {
        "city": rng.choice(["Bonn", "Ulm", "Kiel", "Trier"], size=N, p=[0.6, 0.2, 0.1, 0.1]),
        "day": pd.Series(rng.choice(["mo", "tu", None], size=N)),
        "fare": rng.exponential(size=N),
        "id": [f"a long passenger's number {k}" for k in range(N)],  # which no step reads
    }
)
Y = FRAME["fare"] + (FRAME["city"] == "Ulm") * (FRAME["day"] == "mo") * 2.0 + rng.normal(size=N)
UNKNOWN = OrdinalEncoder(
    handle_unknown="use_encoded_value", unknown_value=-2, encoded_missing_value=-1, min_frequency=5
)
ONE_HOT = OneHotEncoder(sparse_output=False, handle_unknown="ignore")


def compared(model, grid, frame, y, limit, cv=3, **tol):
    options = {"refit": False, "cv": KFold(cv), "return_train_score": True}
    expected = SklearnSearch(model, grid, **options).fit(frame, y)
    search = GridSearchCV(model, grid, memory_limit=limit, **options).fit(blocks(frame, 50, y))
    assert search.report_.fits_done == 0
    assert search.report_.bytes_read > 0  # in chunks
    for name in (name for name in expected.cv_results_ if name.startswith("split")):
        np.testing.assert_allclose(
            search.cv_results_[name],
            expected.cv_results_[name],
            err_msg=name,
            **tol or {"rtol": 1e-12, "atol": 1e-12},
        )


@pytest.mark.parametrize("order", ["as they are", "by city"])
@pytest.mark.parametrize(
    "texts",
    [
        make_pipeline(UNKNOWN, PolynomialFeatures()),
        make_pipeline(ONE_HOT, PolynomialFeatures(interaction_only=True, include_bias=False)),
    ],
    ids=["ranks", "one-hot"],
)
def test_products_of_categories(texts, order):
    """By city, each fold lacks a category: the ranks differ from fold to fold."""
    index = np.arange(N) if order == "as they are" else np.argsort(FRAME["city"], kind="stable")
    frame, y = FRAME.iloc[index], Y.iloc[index]
    encoded = make_column_transformer((texts, ["city", "day"]), (StandardScaler(), ["fare"]))
    model = make_pipeline(encoded, Ridge())
    compared(model, {"ridge__alpha": [1.0, 10.0]}, frame, y, 250_000, cv=4)


def test_products_of_categories_and_numbers():
    encoded = make_column_transformer((UNKNOWN, ["city", "day"]), (StandardScaler(), ["fare"]))
    model = make_pipeline(encoded, PolynomialFeatures(), StandardScaler(), Ridge())
    compared(model, {"ridge__alpha": [1.0, 10.0]}, FRAME, Y, 300_000)


def test_iterations():
    texts = make_pipeline(UNKNOWN, PolynomialFeatures(include_bias=False))
    encoded = make_column_transformer((texts, ["city", "day"]), (StandardScaler(), ["fare"]))
    model = make_pipeline(encoded, LogisticRegression(tol=1e-4, max_iter=1000))
    compared(model, {"logisticregression__C": [0.1]}, FRAME, Y > 1.0, 250_000, cv=2, rtol=0.0, atol=1e-3)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9])
def test_products_behind_a_sparse_encoder(threshold):
    """A ColumnTransformer makes a dense array of sparse columns of which enough are stored."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "day"]),
        ("passthrough", ["fare"]),
        sparse_threshold=threshold,
    )
    model = make_pipeline(encode, PolynomialFeatures(include_bias=False, interaction_only=True), Ridge())
    if threshold < 0.9:
        compared(model, {"ridge__alpha": [1.0, 10.0]}, FRAME, Y, 300_000)
        return
    search = GridSearchCV(model, {}, refit=False, memory_limit=300_000)
    with pytest.raises(TypeError, match="PolynomialFeatures reads a sparse matrix.* Set sparse_output=False"):
        search.fit(blocks(FRAME, 50, Y))


def test_products_behind_an_encoder_alone():
    model = make_pipeline(OneHotEncoder(), PolynomialFeatures(1), Ridge())
    search = GridSearchCV(model, {}, refit=False, memory_limit=100_000)
    with pytest.raises(TypeError, match="PolynomialFeatures reads a sparse matrix.* Set sparse_output=False"):
        search.fit(blocks(FRAME[["city", "day"]], 50, Y))
