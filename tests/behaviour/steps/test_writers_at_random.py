"""Random pipelines of estimators that write, unlock, return views, warn or raise, against scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
from sklearn import model_selection as sk
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.metrics import make_scorer
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from manyfit import model_selection as ours
from tests._covering import spread
from tests._same_results import assert_same_results
from tests._search_fixtures import RANDOM_LASSO

# Fits that fail, and what is made of arrays that somebody has overwritten.
pytestmark = pytest.mark.filterwarnings("ignore")


def dense(X):
    return X.toarray() if scipy.sparse.issparse(X) else np.asarray(X, dtype=float)


def overwritten(X, how):
    """X with something written into it."""
    if scipy.sparse.issparse(X):
        X.data *= 1.5
    elif isinstance(X, pd.DataFrame):
        X["new"] = X.iloc[:, 0] * 2.0
    elif isinstance(X, np.ndarray) and how == "unlocks":
        X.setflags(write=True)
        X *= 1.5
    elif isinstance(X, np.ndarray) and how == "solves":
        scipy.linalg.svd(X, full_matrices=False, overwrite_a=True)
    elif isinstance(X, np.ndarray):
        X[:, 0] *= 1.5
    return X


class Step(TransformerMixin, BaseEstimator):
    HOW = (
        "reads",
        "writes",
        "unlocks",
        "solves",
        "view",
        "state",
        "same",
        "tries",
        "warns",
        "raises",
        "none",
        "y",
    )

    def __init__(self, how="reads", early=False, by=1.5):
        self.how = how
        self.early = early
        self.by = by

    def fit(self, X, y=None):
        if self.how == "warns":
            warnings.warn("a step warns", UserWarning, stacklevel=1)
        if self.how == "raises" and self.by > 2:
            raise ValueError("too much")
        if self.how == "y" and isinstance(y, np.ndarray):
            y *= self.by
        if self.early and self.how in ("writes", "unlocks", "solves"):
            overwritten(X, self.how)
        self.state_ = np.empty((200, dense(X).shape[1]))
        return self

    def transform(self, X):
        if self.how == "none":
            return None
        if not self.early and self.how in ("writes", "unlocks", "solves"):
            X = overwritten(X, self.how)
        if self.how == "tries":
            try:
                X *= self.by
            except Exception:
                X = X * self.by
        rows = dense(X)
        if self.how == "state":
            self.state_[: len(rows), : rows.shape[1]] = rows[:, : self.state_.shape[1]]
            return self.state_[: len(rows)]
        return {"same": rows, "view": rows[:, ::-1]}.get(self.how, rows * self.by)


class Last(RegressorMixin, BaseEstimator):
    HOW = ("reads", "writes", "unlocks", "solves", "y", "weights", "raises")

    def __init__(self, how="reads", k=3):
        self.how = how
        self.k = k

    def fit(self, X, y, sample_weight=None):
        if self.how == "raises" and self.k > 3:
            raise ValueError("too much")
        if self.how == "weights" and sample_weight is not None:
            sample_weight *= np.arange(len(sample_weight)) % self.k
        if self.how in ("writes", "unlocks"):
            X = overwritten(X, self.how)
        self.X_ = dense(X)
        K = self.X_ @ self.X_.T
        K.flat[:: len(K) + 1] += self.k + (0.0 if sample_weight is None else sample_weight)
        self.dual_ = scipy.linalg.solve(K, np.asarray(y), assume_a="pos", overwrite_b=self.how == "solves")
        if self.how == "y" and isinstance(y, np.ndarray):
            y += self.k
        return self

    def predict(self, X):
        return dense(overwritten(X, self.how) if self.how == "writes" else X) @ (self.X_.T @ self.dual_)


def scores_and_writes(estimator, X, y):
    score = -np.abs(np.asarray(estimator.predict(X)) - np.asarray(y)).mean()
    overwritten(X, "writes")
    return score


def measures_and_writes(y_true, y_pred):
    if isinstance(y_true, np.ndarray):
        y_true -= y_pred
    return float(np.abs(y_true).mean())


SPLITTERS = [
    sk.KFold(3),
    sk.KFold(3, shuffle=True, random_state=0),
    sk.ShuffleSplit(2, random_state=0),
    sk.RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
    sk.TimeSeriesSplit(3),
    sk.PredefinedSplit(np.arange(40) % 3),
    sk.GroupKFold(3),
    sk.LeaveOneGroupOut(),
    sk.LeavePGroupsOut(1),
    sk.GroupShuffleSplit(2, random_state=0),
    [(np.arange(20), np.arange(20, 40)), (np.arange(10, 40), np.arange(10))],
    2,
]
CONTAINERS = [
    np.ascontiguousarray,
    np.asfortranarray,
    lambda X: X.astype(np.float32),
    lambda X: pd.DataFrame(X, columns=list("abcd")),
    scipy.sparse.csr_array,
    scipy.sparse.csc_matrix,
    np.ndarray.tolist,
]
SCORERS = [
    None,
    "neg_mean_absolute_error",
    ["r2", "neg_max_error"],
    scores_and_writes,
    {"own": make_scorer(measures_and_writes), "r2": "r2"},
]


def problem(seed):
    """A pipeline, its grid, how it is searched, and its data made anew for each search."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4)) + 1.0
    y = X @ rng.normal(size=4) + 0.3 * rng.normal(size=40)

    def pick(items):
        return items[rng.integers(len(items))]

    def step():
        known = (
            StandardScaler(with_mean=False),
            MaxAbsScaler(),
            FunctionTransformer(),
            Normalizer(),
            "passthrough",
        )
        own = Step(pick(Step.HOW), bool(rng.integers(2)))
        union = FeatureUnion([("a", Step(pick(Step.HOW))), ("b", "passthrough")])
        return clone(pick(known), safe=False) if rng.integers(3) == 0 else pick((own, own, union))

    steps = [(f"s{j}", step()) for j in range(rng.integers(4))]
    last, values = pick(
        [(Last(pick(Last.HOW)), {"last__k": [2, 3, 4]})] * 3
        + [
            (RANDOM_LASSO, {"last__alpha": [0.01, 0.1]}),
            (KNeighborsRegressor(), {"last__n_neighbors": [1, 3]}),
        ]
    )
    grid = values | {f"{name}__by": [1.5, 2.5] for name, one in steps if isinstance(one, Step)}
    options = {"cv": pick(SPLITTERS), "scoring": pick(SCORERS), "return_train_score": bool(rng.integers(2))}
    given = {"groups": np.arange(40) % 4}
    if isinstance(last, Last) and rng.integers(2):
        given["last__sample_weight"] = rng.uniform(0.5, 2.0, 40)
    make, as_y = pick(CONTAINERS), pick([np.copy, pd.Series, np.ndarray.tolist])
    return Pipeline([*steps, ("last", last)]), grid, options, given, lambda: (make(X.copy()), as_y(y))


def check(seed, problem=problem):
    estimator, grid, options, given, data = problem(seed)
    searches, errors = [], []
    for module in (sk, ours):
        search = module.GridSearchCV(clone(estimator), grid, refit=False, **options)
        try:
            search.fit(*data(), **{name: value.copy() for name, value in given.items()})
            searches.append(search)
        except Exception as error:
            errors.append(type(error))
    if errors:
        assert not searches and errors[0] is errors[1]
    else:
        assert_same_results(*reversed(searches))


# Texts, records and objects: what is written there is no number.

ITEMS = ("b", "a", "a text that is longer than a pointer", "c", None, np.nan, 1, True, 1.0, 0.0, -0.0)


def as_object_frame(rows):
    return pd.DataFrame({f"c{j}": pd.Series(rows[:, j], dtype=object) for j in range(rows.shape[1])})


def as_records(rows):
    return np.array([(*row, float(i)) for i, row in enumerate(rows)], dtype="O, O, O, f8")


def as_texts(rows):
    return np.array(rows.tolist(), dtype=np.dtypes.StringDType(na_object=np.nan))


def codes_of(X):
    """Numbers that tell all items from each other."""
    if isinstance(X, pd.DataFrame):
        X = X.to_numpy()
    rows = [tuple(row) for row in X] if isinstance(X, list | tuple) or X.dtype.names else X.tolist()
    return np.array(
        [[sum(map(ord, f"{type(item).__name__}{item}")) % 97 for item in row] for row in rows], float
    )


def items_written(X, where, value):
    """X with a value written into it."""
    if isinstance(X, pd.DataFrame):
        X.iloc[:: where + 2, where] = value
    elif isinstance(X, list):
        X[:] = [(value, *row[1:]) for row in X]
    elif isinstance(X, tuple):
        return X[::-1]
    elif X.dtype.names:
        X[f"f{where}"][:: where + 2] = value
    elif X.dtype == object or (X.dtype.kind == "T" and isinstance(value, str | float)):
        X[:: where + 2, where] = value
    return X


class OfItems(TransformerMixin, BaseEstimator):
    HOW = ("reads", "early", "late", "list", "tuple", "none", "array", "kept", "notes")

    def __init__(self, how="reads", where=0, value="a", by=1.0):
        self.how = how
        self.where = where
        self.value = value
        self.by = by

    def fit(self, X, y=None):
        if self.how == "early":
            items_written(X, self.where, self.value)
        if self.how == "notes" and isinstance(X, pd.DataFrame):
            X.attrs["notes"] = self.where
        return self

    def transform(self, X):
        if self.how == "late":
            return items_written(X, self.where, self.value)
        if self.how in ("list", "tuple", "kept"):
            rows = X.to_numpy() if isinstance(X, pd.DataFrame) else X
            self.kept_ = [tuple(row) for row in (rows if isinstance(rows, list | tuple) else rows.tolist())]
            return {"list": list, "tuple": tuple}.get(self.how, lambda rows: rows)(self.kept_)
        if self.how == "none":
            return None
        return np.array(codes_of(X), dtype=object) if self.how == "array" else X


class Codes(TransformerMixin, BaseEstimator):
    def __init__(self, by=1.0):
        self.by = by

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        noted = getattr(X, "attrs", {}).get("notes", 0)
        return (codes_of(X) + noted) * self.by

    def __sklearn_is_fitted__(self):
        return True


def problem_of_items(seed):
    rng = np.random.default_rng(seed)

    def pick(items):
        return items[rng.integers(len(items))]

    make = pick([as_texts, as_records, as_object_frame, np.array, np.ndarray.tolist])
    items = ITEMS[:4] if make is as_texts else ITEMS
    rows = np.empty((48, 3), dtype=object)
    rows[:] = [[pick(items) for _ in range(3)] for _ in range(48)]
    y = codes_of(rows) @ [1.0, 0.3, 0.1] + rng.normal(size=48)

    def step():
        return OfItems(pick(OfItems.HOW), int(rng.integers(3)), pick(items))

    def union():
        return FeatureUnion([(name, Pipeline([("s", step()), ("c", Codes())])) for name in "ab"])

    middle = pick([union, union, Codes])()
    scaler = StandardScaler(copy=pick([True, np.True_, np.False_, False]))
    steps = [(f"s{j}", step()) for j in range(rng.integers(3))]
    last, values = pick(
        [
            (DecisionTreeRegressor(random_state=0), {"last__max_depth": [1, 2, 4]}),
            (KNeighborsRegressor(), {"last__n_neighbors": [1, 3]}),
            (RANDOM_LASSO, {"last__alpha": [0.1, 1.0], "last__copy_X": np.array([True, False])}),
        ]
    )
    if rng.integers(2):
        values["scaler__copy"] = np.array([True, False])
    if isinstance(middle, Codes):
        values["middle__by"] = [1.0, 2.0]
    options = {"cv": pick([3, sk.KFold(3, shuffle=True, random_state=0)])}
    options["return_train_score"] = bool(rng.integers(2))
    model = Pipeline([*steps, ("middle", middle), ("scaler", scaler), ("last", last)])
    return model, values, options, {}, lambda: (make(rows.copy()), y.copy())


@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", spread(range(108, 114), 3))
def test_random_searches_of_items_have_the_results_of_scikit_learn(seed):
    check(seed, problem_of_items)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [*range(108), *range(114, 400)])
def test_many_random_searches_of_items_have_the_results_of_scikit_learn(seed):
    check(seed, problem_of_items)


@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", spread(range(10), 6))
def test_random_searches_have_the_results_of_scikit_learn(seed):
    check(seed)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10, 400))
def test_many_random_searches_have_the_results_of_scikit_learn(seed):
    check(seed)
