"""Where scikit-learn warns or raises, on one fold or on all, the fit is its own."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

from manyfit.model_selection import GridSearchCV
from tests._covering import spread
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
    one_hot,
)

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
def test_a_slice_of_no_columns_fails_as_in_scikit_learn():
    """scikit-learn passes over an empty list, but fits a transformer to an empty slice."""
    chosen = [("none", StandardScaler(), slice(0, 0)), ("rooms", one_hot(), ["rooms"])]
    model = make_pipeline(ColumnTransformer(chosen), Ridge())
    grid = {"columntransformer__none": ["drop", "passthrough", StandardScaler()]}
    search = both(model, grid, FRAME, Y, refit=False, may_fail=True)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, False, True]


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
