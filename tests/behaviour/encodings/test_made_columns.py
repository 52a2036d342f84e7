"""Columns that a step makes of others and learns nothing for: made once a search, not once a fold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV as TheirSearch
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from manyfit.folds import Encoding
from manyfit.model_selection import GridSearchCV
from tests._covering import covering

rng = np.random.default_rng(0)
N = 400
X = rng.normal(size=(N, 4)) * [1.0, 3.0, 0.5, 5.0] + [0.0, 1.0, 0.5, -2.0]
GAPS = np.where(rng.random((N, 4)) < 0.1, np.nan, X)
Y = X[:, 0] * (X[:, 1] - 1.0) + X[:, 0] ** 2 + rng.normal(size=N)
ALPHAS = {"ridge__alpha": [0.1, 10.0]}
KNOTS = np.quantile(X, [0.05, 0.3, 0.6, 0.95], axis=0)


def compared(model, grid, X=X, y=Y, cv=4):
    options = {"cv": cv, "refit": False, "return_train_score": True}
    theirs = TheirSearch(model, grid, **options).fit(X, y)
    ours = GridSearchCV(model, grid, **options).fit(X, y)
    for key in (key for key in theirs.cv_results_ if key.startswith("split")):
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-9, atol=1e-10)
    return ours.report_


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("before", "behind"),
    covering(
        [
            [],
            [StandardScaler()],
            [MinMaxScaler()],
            [MaxAbsScaler()],
            [RobustScaler(with_centering=False)],
            [FunctionTransformer(np.tanh)],
            [FunctionTransformer(np.tanh), StandardScaler(with_std=False)],
        ],
        [[], [StandardScaler()], [StandardScaler(), PCA(3)]],
        strength=1,
    ),
)
def test_products_behind_scalers(before, behind):
    model = make_pipeline(*before, PolynomialFeatures(), *behind, Ridge())
    report = compared(model, {"polynomialfeatures__degree": [1, 2, 3], **ALPHAS}, cv=3)
    assert report.transformer_fits == 0
    assert report.fits_done <= 6  # products of raw numbers may be too nearly dependent for a small alpha


@pytest.mark.parametrize(
    "options",
    [
        {"interaction_only": True},
        {"include_bias": False},
        {"degree": (2, 3)},
        {"degree": 0},
        {"order": "F"},
    ],
    ids=str,
)
def test_each_option_of_products(options):
    model = make_pipeline(StandardScaler(), PolynomialFeatures(**options), StandardScaler(), Ridge())
    report = compared(model, ALPHAS)
    assert report.fits_done == report.transformer_fits == 0


@pytest.mark.parametrize(
    ("strategy", "scaler"),
    covering(["mean", "median", "constant"], ["passthrough", StandardScaler()], strength=1),
)
def test_products_of_gaps_that_a_fold_fills(scaler, strategy):
    """A gap counts as what its own fold has learned, in a square and in products with gaps and numbers."""
    model = make_pipeline(
        SimpleImputer(strategy=strategy), scaler, PolynomialFeatures(), StandardScaler(), Ridge()
    )
    report = compared(model, {"polynomialfeatures__degree": [2, 3], **ALPHAS}, GAPS[:, :3])
    assert report.fits_shared == 16 and report.transformer_fits == 0


def test_columns_that_are_constant_in_a_fold():
    flat = X.copy()
    flat[:, 2] = 0.1
    flat[: N - 100, 3] = 2.0
    model = make_pipeline(PolynomialFeatures(), StandardScaler(), Ridge())
    report = compared(model, ALPHAS, flat)
    assert report.fits_shared >= 4  # squares of 0 and 2 are nearly dependent on them for a small alpha


@pytest.mark.parametrize(
    ("scaler", "spread"), covering([StandardScaler(), MinMaxScaler()], [1e-6, 1e-4, 1e-2], strength=1)
)
def test_a_column_that_varies_little_in_a_fold(scaler, spread):
    """Its scaled square is a small difference of large terms, which the fold leaves to scikit-learn."""
    late = X.copy()
    late[: N // 2, 0] = 3.0 + spread * rng.normal(size=N // 2)
    y = np.where(np.arange(N) < N // 2, (late[:, 0] - 3.0) / spread, 0.0) + X[:, 1]
    model = make_pipeline(scaler, PolynomialFeatures(), Ridge())
    report = compared(model, ALPHAS, late, y, cv=TimeSeriesSplit(3))
    assert report.fits_shared == 6 and report.transformer_fits >= 2


def test_a_column_that_is_constant_in_all_rows():
    flat = X.copy()
    flat[:, 2] = 0.7
    report = compared(make_pipeline(StandardScaler(), PolynomialFeatures(), Ridge()), ALPHAS, flat)
    assert report.fits_done == report.transformer_fits == 0


@pytest.mark.filterwarnings("error")
def test_squares_that_overflow():
    report = compared(make_pipeline(MaxAbsScaler(), PolynomialFeatures(), Ridge()), ALPHAS, X * 1e160)
    assert report.transformer_fits == 8


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("step", "behind"),
    covering(
        [
            Normalizer(),
            Normalizer("l1"),
            Normalizer("max"),
            SplineTransformer(knots=KNOTS),
            SplineTransformer(degree=2, knots=KNOTS, extrapolation="linear", include_bias=False),
            SplineTransformer(knots=KNOTS, extrapolation="periodic"),
        ],
        [[], [StandardScaler()]],
        strength=1,
    ),
)
def test_rows_by_themselves(step, behind):
    report = compared(make_pipeline(step, *behind, Ridge()), ALPHAS)
    assert report.fits_done == report.transformer_fits == 0


def test_knots_of_a_fold_and_float32_are_left_alone():
    report = compared(make_pipeline(SplineTransformer(), Ridge()), ALPHAS)
    assert report.transformer_fits == 4
    model = make_pipeline(PolynomialFeatures(), Ridge())
    single = X[:, :2].astype(np.float32)
    theirs = TheirSearch(model, ALPHAS, cv=4, refit=False).fit(single, Y)
    ours = GridSearchCV(model, ALPHAS, cv=4, refit=False).fit(single, Y)
    scores = (one.cv_results_["mean_test_score"] for one in (ours, theirs))
    np.testing.assert_allclose(*scores, rtol=2e-6)
    assert ours.report_.transformer_fits == 1  # of all rows, not of each fold


def test_in_composites_of_a_frame():
    frame = pd.DataFrame(GAPS, columns=list("abcd")).assign(word=rng.choice(["x", "y", "z"], N))
    numbers = make_pipeline(SimpleImputer(), StandardScaler(), PolynomialFeatures())
    model = make_pipeline(
        make_column_transformer(
            (numbers, ["a", "b"]),
            (make_pipeline(SimpleImputer(), make_union(StandardScaler(), MinMaxScaler())), ["c", "d"]),
            (OneHotEncoder(sparse_output=False), ["word"]),
        ),
        Ridge(),
    )
    path = "columntransformer__pipeline-1__polynomialfeatures__degree"
    report = compared(model, {path: [1, 2], **ALPHAS}, frame)
    assert report.fits_done == report.transformer_fits == 0


@pytest.mark.parametrize("cv", [4, 60], ids=["planned", "too many"])
def test_products_of_categories(cv):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        word=np.where(np.arange(N) == 7, "w", rng.choice(["x", "y", "z"], N)), place=rng.choice(list("pq"), N)
    )
    ranks = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    # A ColumnTransformer makes a dense array of what is sparse, since much of it is stored.
    for texts, *end in (
        (ranks, StandardScaler(), Ridge()),
        (OneHotEncoder(handle_unknown="ignore"), Ridge()),
    ):
        encode = make_column_transformer((texts, ["word", "place"]), (StandardScaler(), ["a", "b"]))
        model = make_pipeline(encode, PolynomialFeatures(interaction_only=texts is not ranks), *end)
        report = compared(model, ALPHAS, frame, cv=cv)
        assert (report.transformer_fits == 0) == (cv == 4)


def test_iterations_read_products():
    model = make_pipeline(
        StandardScaler(), PolynomialFeatures(include_bias=False), LogisticRegression(tol=1e-10, max_iter=1000)
    )
    grid = {"polynomialfeatures__degree": [1, 2], "logisticregression__C": [0.1, 1.0]}
    options = {"cv": 4, "refit": False, "scoring": "neg_log_loss"}
    theirs = TheirSearch(model, grid, **options).fit(X, Y > 1.0)
    ours = GridSearchCV(model, grid, sharing="optimum", **options).fit(X, Y > 1.0)
    assert ours.report_.fits_shared == 16 and ours.report_.transformer_fits == 0
    scores = (one.cv_results_["mean_test_score"] for one in (ours, theirs))
    np.testing.assert_allclose(*scores, rtol=1e-6)


def test_each_degree_costs_a_pass_and_wide_ones_are_left_out():
    model = make_pipeline(PolynomialFeatures(), StandardScaler(), Ridge())
    wide = rng.normal(size=(600, 30))
    grid = {"polynomialfeatures__degree": [1, 2, 4], "ridge__alpha": [1.0, 10.0, 100.0]}
    search = GridSearchCV(model, grid, memory_limit=300_000_000)
    plan = search.plan(wide, wide[:, 0])
    reasons = [group.reason for group in plan.groups if len(group.candidates) == 3]
    assert any("46376 columns would need more than memory_limit" in reason for reason in reasons)
    two = GridSearchCV(model, {"polynomialfeatures__degree": [1, 2], **ALPHAS}, cv=4, refit=False)
    assert two.fit(np.repeat(wide, 3, axis=0)[:, :12], np.repeat(wide[:, 0], 3)).report_.passes == 2


def test_products_that_find_no_room_cost_nothing(monkeypatch):
    """A column that an encoder makes has a number for each category: all have the square of their number."""

    def refuse(*_):
        raise AssertionError

    frame = pd.DataFrame({"code": [f"code {i % 60}" for i in range(600)]})
    encode = OneHotEncoder(sparse_output=False)
    search = GridSearchCV(make_pipeline(encode, PolynomialFeatures(4), Ridge()), ALPHAS, refit=False)
    monkeypatch.setattr(Encoding, "coded", refuse)
    assert "635376 columns would need more than memory_limit" in str(search.plan(frame, np.arange(600.0)))


def test_the_matrices_of_a_search_fit_memory_limit_together():
    """Ten sets of knots have five matrices of 100 columns, of which two would fit."""
    knots = [np.linspace([0.0] * 5, [k + 1.0] * 5, 9) for k in range(10)]
    grid = {"splinetransformer__knots": knots, **ALPHAS}
    search = GridSearchCV(make_pipeline(SplineTransformer(), Ridge()), grid, memory_limit=30_000_000)
    data = rng.random((4000, 5))
    plan = search.plan(data, data[:, 0])
    kinds = [group.strategy.kind for group in plan.groups for _ in group.candidates]
    assert 0 < kinds.count("moments") < 30


@pytest.mark.parametrize("last", [Ridge(), LogisticRegression(), LinearSVC(dual=False)])
@pytest.mark.parametrize("sharing", ["auto", "optimum"])
def test_made_columns_that_are_all_constant(last, sharing):
    frame = pd.DataFrame({"gaps": GAPS[:40, 0]})
    made = PolynomialFeatures(degree=(2, 3), interaction_only=True)  # a bias and nothing else
    model = Pipeline([("first", SimpleImputer()), ("made", made), ("last", last)])
    grid, y = {"last__alpha" if isinstance(last, Ridge) else "last__C": [0.1, 1.0]}, np.arange(40) % 2
    ours = GridSearchCV(model, grid, refit=False, sharing=sharing).fit(frame, y)
    theirs = TheirSearch(model, grid, refit=False).fit(frame, y)
    scores = (one.cv_results_["mean_test_score"] for one in (ours, theirs))
    np.testing.assert_allclose(*scores, atol=1e-12)
    assert not any(why.startswith("shared work failed") for why in ours.report_.left_to_sklearn)
