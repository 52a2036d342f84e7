"""Searches over frames with numbers, gaps and categories: one encoding of X serves all folds and settings."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import model_selection
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
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
from manyfit.model_selection import GridSearchCV
from tests._covering import covering, spread
from tests._same_results import both

N = 240
NUMBERS, WORDS = ["age", "income", "debt"], ["city", "job"]


def make_frame(n=N):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(5.0, 2.0, n),
            "income": rng.lognormal(0.0, 1.0, n),
            "debt": rng.normal(4.0, 2.0, n),
            "rooms": rng.integers(1, 6, n),
            "owner": rng.random(n) < 0.5,
            "city": rng.choice(["Rome", "Oslo", "Bern", "Köln"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "job": rng.choice(["a", "b"], n),
        }
    )
    for name in ("age", "debt"):
        frame.loc[rng.random(n) < 0.1, name] = np.nan
    return frame


FRAME = make_frame()


def make_targets(frame):
    cities = frame["city"].map({"Rome": 3.0, "Oslo": 0.0, "Bern": -2.0, "Köln": 5.0})
    noise = np.random.default_rng(1).normal(size=len(frame))
    return (frame["age"].fillna(3.0) + cities + noise).to_numpy()


Y = make_targets(FRAME)
RIDGE = {"ridge__alpha": [0.1, 100.0]}


def one_hot(**params):
    return OneHotEncoder(**{"handle_unknown": "ignore", "sparse_output": False, **params})


def imputed(*steps, **params):
    return make_pipeline(SimpleImputer(**params), *steps)


def columns(number=None, word=None, **params):
    number = imputed(StandardScaler()) if number is None else number
    word = one_hot() if word is None else word
    return ColumnTransformer([("numbers", number, NUMBERS), ("words", word, WORDS)], **params)


def assert_served(model, X=FRAME, y=Y, grid=RIDGE, **params):
    """The search made no single fit, and has scikit-learn's scores."""
    search = both(model, grid, X, y, **{"refit": False, "cv": 3, **params})
    assert search.report_.fits_done == 0, search.plan(X, y)
    return search


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


# Where scikit-learn warns or raises, on one fold or on all, the fit is its own.

LAST = np.arange(N) >= N - N // 5


def rare(frame=FRAME):
    """A city of the last fold only."""
    return frame.assign(city=np.where(LAST & (np.arange(N) % 2 == 0), "Wien", frame["city"]))


def gaps_of_the_first_fold(frame=FRAME):
    """A column of gaps in all rows but those of the last fold."""
    return frame.assign(age=np.where(LAST, 1.0, np.nan))


LEFT = {
    "unknown category": (columns(word=one_hot(handle_unknown="error")), rare(), 1),
    "unknown category, dropped": (columns(word=one_hot(drop="first")), rare(), 1),
    "ignored": (columns(), rare(), 0),
    "infrequent": (columns(word=one_hot(min_frequency=60, handle_unknown="infrequent_if_exist")), rare(), 0),
    "infrequent, warned": (columns(word=one_hot(min_frequency=60, handle_unknown="warn")), rare(), 1),
    "no value": (columns(), gaps_of_the_first_fold(), 1),
    "clipped": (columns(imputed(MinMaxScaler(clip=True))), FRAME, 3),
    "sparse, by another solver": (columns(word=OneHotEncoder(), sparse_threshold=1.0), FRAME, 3),
    "names that may not be unique": (
        columns(imputed(add_indicator=True), verbose_feature_names_out=False).set_output(transform="pandas"),
        FRAME,
        3,
    ),
    "one-dimensional": (
        ColumnTransformer([("word", CountVectorizer(), "city"), ("numbers", imputed(), NUMBERS)]),
        FRAME,
        3,
    ),
    "sparse columns": (
        ColumnTransformer([("rooms", MaxAbsScaler(), ["rooms"])]),
        FRAME.astype({"rooms": pd.SparseDtype(int)}),
        3,
    ),
    "another function": (columns(imputed(FunctionTransformer(np.sort))), FRAME, 3),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize(("transformer", "X", "n_left"), spread(LEFT.items(), 6))
@pytest.mark.filterwarnings("ignore")
def test_folds_that_are_not_linear_are_fitted(transformer, X, n_left):
    sparse = getattr(transformer, "sparse_threshold", 0.3) == 1.0
    model = make_pipeline(transformer, LinearRegression() if sparse else Ridge())
    grid = {"linearregression__tol": [1e-6, 1e-8]} if sparse else RIDGE
    search = both(model, grid, X, Y, cv=3, refit=False)
    on_moments = sum(one.fits_requested for one in search.plan(X, Y).groups if one.strategy.kind == "moments")
    assert search.report_.fits_done == (2 * n_left if on_moments else search.report_.fits_done)
    assert bool(on_moments) == (n_left < 3)


@pytest.mark.filterwarnings("ignore")
def test_gaps_that_are_filled_with_nan_fail_as_in_scikit_learn():
    model = make_pipeline(SimpleImputer(strategy="constant"), MinMaxScaler(), Ridge())
    X = FRAME[NUMBERS].to_numpy()
    both(model, {"simpleimputer__fill_value": [np.nan, 0.0]}, X, Y, cv=3, refit=False, may_fail=True)


@pytest.mark.filterwarnings("ignore")
def test_an_infinite_category_fails_as_in_scikit_learn():
    X = FRAME.assign(rooms=np.where(np.arange(N) == 3, np.inf, FRAME["rooms"]))
    model = make_pipeline(ColumnTransformer([("rooms", one_hot(), ["rooms"])]), Ridge())
    search = both(model, RIDGE, X, Y, refit=False, may_fail=True)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()


def test_a_warning_of_one_fold_is_given():
    model = make_pipeline(columns(word=one_hot(min_frequency=60, handle_unknown="warn")), Ridge())
    with warnings.catch_warnings(record=True) as theirs:
        warnings.simplefilter("always")
        both(model, RIDGE, rare(), Y, cv=3, refit=False)
    assert any("unknown categories" in str(one.message) for one in theirs)


def test_frames_with_names_of_two_types_are_left_alone():
    X = FRAME.rename(columns={"age": 3})
    model = make_pipeline(ColumnTransformer([("numbers", imputed(), ["income"])]), Ridge())
    with pytest.raises(ValueError, match="fits failed"):
        both(model, RIDGE, X, Y, refit=False)
    with pytest.raises(ValueError, match="fits failed"):
        GridSearchCV(model, RIDGE, refit=False).fit(X, Y)


@pytest.mark.parametrize(
    ("X", "chosen"),
    [(FRAME.rename(columns={"income": "age"}), ["debt"]), (FRAME, ["age", "age"])],
    ids=["in X", "read twice"],
)
def test_columns_of_one_name_are_left_alone(X, chosen):
    model = make_pipeline(ColumnTransformer([("numbers", imputed(), chosen)]), Ridge())
    try:
        model_selection.GridSearchCV(model, RIDGE, refit=False).fit(X, Y)
    except ValueError:
        with pytest.raises(ValueError, match="fits failed"):
            GridSearchCV(model, RIDGE, refit=False).fit(X, Y)
    else:  # scikit-learn before 1.8
        both(model, RIDGE, X, Y, refit=False)


def test_the_union_of_all_columns_reads_words_as_scikit_learn_does():
    model = make_pipeline(FeatureUnion([("words", one_hot()), ("again", one_hot(min_frequency=10))]), Ridge())
    assert_served(model, X=FRAME[WORDS])


@pytest.mark.parametrize(
    ("last", "grid", "n_shown"),
    spread(
        [
            (GaussianNB(), {"gaussiannb__var_smoothing": [1e-9, 1e-3]}, 0),
            (KNeighborsClassifier(), {"kneighborsclassifier__n_neighbors": [3, 5]}, 1),
        ],
        1,
    ),
)
def test_a_family_that_refuses_a_fold_leaves_its_warnings_to_the_fits(last, grid, n_shown):
    """GaussianNB refuses sparse rows before those to score, with an unknown category, are transformed."""
    encoder = OneHotEncoder(handle_unknown="warn", sparse_output=True)
    model = make_pipeline(columns(word=encoder, sparse_threshold=1.0), last)
    shown = []
    for cls in (model_selection.GridSearchCV, GridSearchCV):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with suppress(ValueError):  # all fits of GaussianNB fail
                cls(model, grid, cv=KFold(5), refit=False).fit(rare(), np.arange(N) % 2)
        shown.append(sum("unknown categories" in str(one.message) for one in found))
    # The settings have the output of the encoder in common.
    assert shown == [2 * n_shown, n_shown]
