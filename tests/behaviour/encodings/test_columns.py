"""Searches over frames with numbers, gaps and categories: one encoding of X serves all folds and settings."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.fixes import parse_version

from manyfit.families.smooth import _cost
from tests._covering import covering, spread
from tests._same_results import both
from tests.behaviour.encodings._columns import (
    FRAME,
    NUMBERS,
    RIDGE,
    WORDS,
    N,
    Y,
    assert_served,
    columns,
    imputed,
    make_frame,
    make_targets,
    one_hot,
)

SERVED = {
    "median": columns(imputed(StandardScaler(), strategy="median")),
    "most frequent number": columns(imputed(strategy="most_frequent")),
    "constant number": columns(imputed(strategy="constant", fill_value=-1.5)),
    "constant by default": columns(imputed(strategy="constant")),
    "indicator": columns(imputed(add_indicator=True)),
    "indicator, scaled": columns(imputed(StandardScaler(), add_indicator=False, strategy="mean")),
    "scaled before the gaps are filled": columns(make_pipeline(StandardScaler(), SimpleImputer())),
    "min and max": columns(imputed(MinMaxScaler((-1.0, 3.0)))),
    "largest magnitude": columns(imputed(MaxAbsScaler())),
    "quantiles": columns(imputed(RobustScaler(quantile_range=(10.0, 80.0), unit_variance=True))),
    "quantiles with gaps": columns(make_pipeline(RobustScaler(), SimpleImputer(strategy="median"))),
    "two scalers": columns(imputed(MinMaxScaler(), StandardScaler(with_std=False))),
    "PCA of numbers": columns(imputed(StandardScaler(), PCA(2))),
    "union": columns(make_union(imputed(), imputed(MinMaxScaler()))),
    "ordinal": columns(word=OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)),
    "drop first": columns(word=OneHotEncoder(drop="first", sparse_output=False)),
    "drop if binary": columns(word=OneHotEncoder(drop="if_binary", sparse_output=False)),
    "infrequent by count": columns(word=one_hot(min_frequency=20)),
    "infrequent by share": columns(word=one_hot(min_frequency=0.2, handle_unknown="infrequent_if_exist")),
    "most categories": columns(word=one_hot(max_categories=2)),
    "one category": columns(word=one_hot(max_categories=1)),
    "imputed words": columns(word=make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot())),
    "remainder": ColumnTransformer([("words", one_hot(), WORDS)], remainder=imputed()),
    "remainder passed through": ColumnTransformer(
        [("words", one_hot(), WORDS), ("numbers", imputed(), ["age", "debt"])], remainder="passthrough"
    ),
    "dtypes": make_column_transformer(
        (imputed(StandardScaler()), make_column_selector(dtype_include="number")),
        (one_hot(), make_column_selector(dtype_exclude=["number", "bool"])),
    ),
    "positions": ColumnTransformer([("numbers", imputed(), [0, 2]), ("words", one_hot(), slice(5, 7))]),
    "integers as categories": ColumnTransformer([("all", one_hot(), ["rooms", "owner", "job"])]),
    "function": ColumnTransformer(
        [("log", make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), ["income"])]
    ),
    "function None": ColumnTransformer(
        [("same", FunctionTransformer(), ["income"]), ("word", one_hot(), WORDS)]
    ),
    "threshold": columns(imputed(Binarizer(threshold=0.5))),
    "quantiles without a scale": columns(imputed(RobustScaler(with_scaling=False))),
    "quantiles without a spread": ColumnTransformer(
        [("marks", make_pipeline(Binarizer(threshold=1e6), RobustScaler(unit_variance=True)), ["income"])]
    ),
    "imputed twice": columns(imputed(SimpleImputer(), StandardScaler(), strategy="median")),
    "nested": ColumnTransformer(
        [("inner", ColumnTransformer([("numbers", imputed(), ["age"])], remainder=one_hot()), ["job", "age"])]
    ),
    "nothing learned": ColumnTransformer([("rest", "passthrough", ["income", "rooms", "owner"])]),
    "dropped": ColumnTransformer([("numbers", imputed(), NUMBERS), ("words", "drop", WORDS)]),
    "no columns": ColumnTransformer([("numbers", imputed(), NUMBERS), ("words", one_hot(), [])]),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize("transformer", spread(SERVED.items(), 11))
def test_columns_are_encoded_once_for_all_folds(transformer):
    assert_served(make_pipeline(transformer, Ridge()))


@pytest.mark.parametrize("model", spread([Ridge(), Ridge(tol=1e-8), Ridge(max_iter=3)], 2))
def test_ridge_on_sparse_rows_stops_where_scikit_learn_stops(model):
    words = OneHotEncoder(handle_unknown="ignore")
    weights = np.random.default_rng(0).uniform(0.0, 2.0, N)
    pipeline = make_pipeline(columns(imputed(MaxAbsScaler()), words, sparse_threshold=1.0), model)
    assert_served(pipeline, scoring="neg_mean_squared_error")
    search = both(pipeline, RIDGE, FRAME, Y, {"ridge__sample_weight": weights}, refit=False, cv=3)
    assert search.report_.fits_done == 0


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("threshold", "is_served", "union"),
    covering([(0.05, True), (0.2, False), (0.9, True)], [False, True], strength=1),
)
def test_zeros_that_a_join_drops_may_decide_whether_rows_are_sparse(threshold, is_served, union):
    zeros = np.random.default_rng(0).random((N, 2)) < 0.9
    X = FRAME[["city"]].assign(**dict(zip("ab", np.where(zeros, 0.0, zeros.cumsum(axis=0)).T, strict=True)))
    words, rest = (OneHotEncoder(), ["city"]), ("passthrough", ["a", "b"])
    inner = make_column_transformer(words, rest, sparse_threshold=1.0)
    if union:
        inner = make_union(
            make_column_transformer(words, sparse_threshold=1.0), make_column_transformer(rest)
        )
    outer = ColumnTransformer([("inner", inner, ["city", "a", "b"])], sparse_threshold=threshold)
    search = both(make_pipeline(outer, Ridge()), RIDGE, X, Y, cv=3, refit=False)
    on_moments = all(group.strategy.kind == "moments" for group in search.plan(X, Y).groups)
    assert on_moments == is_served


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "cv", [KFold(5), KFold(3, shuffle=True, random_state=0), ShuffleSplit(4, random_state=0)]
)
def test_splits_of_any_kind_are_served(cv):
    assert_served(make_pipeline(columns(), StandardScaler(with_mean=False), Ridge()), cv=cv)


def test_settings_of_steps_share_one_encoding():
    grid = {
        "columntransformer__numbers__simpleimputer__strategy": ["mean", "median"],
        "columntransformer__words__max_categories": [None, 3],
        "ridge__alpha": [0.1, 10.0],
    }
    search = assert_served(make_pipeline(columns(), Ridge()), grid=grid)
    assert search.report_.passes == 1


def test_steps_may_be_exchanged_by_settings():
    grid = {
        "columntransformer__numbers": [imputed(), imputed(MinMaxScaler())],
        "columntransformer__words": [one_hot(), "drop", OneHotEncoder(drop="first", sparse_output=False)],
        "ridge__alpha": [0.1, 10.0],
    }
    assert_served(make_pipeline(columns(), Ridge()), grid=grid)


def test_weights_training_scores_and_the_refit_are_scikit_learns():
    weights = np.random.default_rng(0).uniform(0.0, 2.0, N)
    model = make_pipeline(columns(), Ridge())
    search = both(
        model, RIDGE, FRAME, Y, {"ridge__sample_weight": weights}, return_train_score=True,
        scoring=["r2", "neg_mean_absolute_error"], refit="r2", cv=3,
    )  # fmt: skip
    assert search.report_.fits_done == 0
    assert type(search.best_estimator_[0]) is ColumnTransformer
    np.testing.assert_allclose(search.predict(FRAME), search.best_estimator_.predict(FRAME))


@pytest.mark.parametrize("sparse", [False, True])
def test_logistic_regression_iterates_over_the_encoding(sparse, monkeypatch):
    monkeypatch.setattr(_cost, "FIXED", 0.0)  # fewer rows than it pays for
    X = make_frame(1000)
    labels = np.where(make_targets(X) > 5.0, "high", "low")
    words = one_hot(sparse_output=sparse)
    model = make_pipeline(columns(word=words), LogisticRegression(tol=1e-8, max_iter=1000))
    grid = {"logisticregression__C": np.logspace(-2, 1, 4)}
    search = both(
        model, grid, X, labels, ours={"sharing": "optimum"}, scoring="neg_log_loss", refit=False, cv=3,
        compare={"rtol": 1e-6},
    )  # fmt: skip
    assert search.report_.fits_done == 0


CONVERSIONS = {
    "nullable": lambda X: X.convert_dtypes().astype(dict.fromkeys(WORDS, object)),
    "category": lambda X: X.astype(dict.fromkeys(WORDS, "category")),
    "object": lambda X: X.astype(dict.fromkeys(WORDS, object)),
    "Arrow": lambda X: X.astype({"age": "double[pyarrow]", "debt": "double[pyarrow]"}),
    "another index": lambda X: X.set_index(np.arange(N)[::-1] * 7),
}


@pytest.mark.parametrize("convert", spread(CONVERSIONS.items(), 2))
def test_dtypes_of_frames(convert):
    assert_served(make_pipeline(columns(), Ridge()), X=convert(FRAME))


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="scikit-learn finds columns of polars by a protocol that polars dropped",
)
def test_frames_of_polars():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({name: FRAME[name].to_list() for name in FRAME})
    X = X.with_columns(pl.col("age").fill_nan(None))
    assert_served(make_pipeline(columns(), Ridge()), X=X)


def test_arrays_with_gaps_are_encoded():
    X = FRAME[[*NUMBERS, "rooms"]].to_numpy()
    assert_served(make_pipeline(SimpleImputer(), MinMaxScaler(), Ridge()), X=X)
    assert_served(make_pipeline(make_union(SimpleImputer(), SimpleImputer(strategy="median")), Ridge()), X=X)


def test_numbers_far_from_zero_keep_their_digits():
    X = FRAME.assign(debt=FRAME["debt"] * 1e3 + 1e8)
    assert_served(make_pipeline(columns(), Ridge()), X=X)


def test_missing_words():
    X = FRAME.astype({"city": object})
    X.loc[::7, "city"] = np.nan
    assert_served(make_pipeline(columns(), Ridge()), X=X)
    filled = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), one_hot())
    assert_served(make_pipeline(columns(word=filled), Ridge()), X=X)
    frequent = make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot(min_frequency=5))
    assert_served(make_pipeline(columns(word=frequent), Ridge()), X=X)
    X.loc[::7, "city"] = None
    assert_served(make_pipeline(columns(), Ridge()), X=X)
