"""Values of parameters that only scikit-learn can judge: they are left to it, and end no search."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.estimators import Cost, Family, FoldRows, Predictions
from manyfit.folds import Unsupported
from manyfit.model_selection import GridSearchCV
from tests._covering import spread
from tests._same_results import X, Y
from tests.behaviour.iterations._optimum import Optimum

TIGHT = {"tol": 1e-10, "max_iter": 10_000}
POSITIVE, SIGNS = Y - Y.min() + 1.0, (Y > 0).astype(int)
SVR = LinearSVR(loss="squared_epsilon_insensitive", dual=False, **TIGHT)


class Number(float):
    """A float that will not be computed with."""

    def __mul__(self, other):
        raise RuntimeError("no product")

    __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = __mul__


VALUES = {
    "10**400": 10**400,
    "10**6000": 10**6000,  # which Python does not print
    "10**19": 10**19,
    "-10**19": -(10**19),
    "Fraction": Fraction(1, 2),
    "Decimal": Decimal("0.5"),
    "Decimal NaN": Decimal("nan"),
    "float16": np.float16(600.0),
    "longdouble": np.longdouble(0.5),
    "int8": np.int8(100),
    "complex": 1j,
    "complex128": np.complex128(1.0),
    "array of no dimension": np.array(0.5),
    "array of one number": np.array([0.5]),
    "array": np.array([0.5, 0.1]),
    "array of objects": np.array([Fraction(1, 2)], dtype=object),
    "series": pd.Series([0.5]),
    "text": "1",
    "None": None,
    "bool": True,
    "bool of NumPy": np.True_,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "NA": pd.NA,
    "datetime": np.datetime64("2020-01-01"),
    "Number": Number(0.5),
    "list": [0.5],
    "dict": {"a": 1.0},
    "class": float,
}
# A free parameter of each family, a shared one, and the parameters of affine steps.
PLACES = {
    "Ridge": (Ridge(), "alpha", 1.5, Y),
    "Ridge behind steps": (make_pipeline(StandardScaler(), Ridge()), "ridge__alpha", 1.5, Y),
    "Ridge behind any step": (make_pipeline(FunctionTransformer(np.tanh), Ridge()), "ridge__alpha", 1.5, Y),
    "LogisticRegression": (LogisticRegression(**TIGHT), "C", 1.5, SIGNS),
    "PoissonRegressor": (PoissonRegressor(**TIGHT), "alpha", 1.5, POSITIVE),
    "LinearSVC": (LinearSVC(dual=False, **TIGHT), "C", 0.1, SIGNS),
    "LinearSVR": (SVR, "C", 0.01, Y),
    "epsilon": (clone(SVR).set_params(C=0.01), "epsilon", 0.1, Y),
    "tol": (LogisticRegression(max_iter=10_000), "tol", 1e-10, SIGNS),
    "power": (TweedieRegressor(link="log", **TIGHT), "power", 1, POSITIVE),
    "n_components": (make_pipeline(PCA(), Ridge()), "pca__n_components", 2, Y),
    "k": (make_pipeline(SelectKBest(f_regression), Ridge()), "selectkbest__k", 2, Y),
    "threshold": (make_pipeline(VarianceThreshold(), Ridge()), "variancethreshold__threshold", 0.1, Y),
    "with_mean": (make_pipeline(StandardScaler(), Ridge()), "standardscaler__with_mean", True, Y),
}


def outcome(search, y):
    """The fitted search or the type of its error; and how many failed fits were warned of."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            search.fit(X, y)
        except Exception as error:  # whatever scikit-learn raises
            return type(error), 0
    return search, sum(one.category is FitFailedWarning for one in heard)


def assert_same_scores(ours, theirs, value):
    """Not by the printed parameters: some have too many digits."""
    for key, scores in theirs.cv_results_.items():
        if "test_score" in key and "rank" not in key:
            found = ours.cv_results_[key]
            np.testing.assert_allclose(found, scores, rtol=1e-4, err_msg=f"{key} of a {type(value).__name__}")


@pytest.mark.invariant("scikit-learn takes over from a family that fails")
@pytest.mark.parametrize("turn", spread(range(5), 1))
@pytest.mark.parametrize("place", PLACES)
def test_what_scikit_learn_makes_of_a_value(place, turn):
    """Each place has a fifth of the values, and the place behind it the next one."""
    estimator, name, usual, y = PLACES[place]
    for value in list(VALUES.values())[(list(PLACES).index(place) + turn) % 5 :: 5]:
        grid, options = {name: [value, usual]}, {"cv": 2, "refit": False}
        theirs = outcome(model_selection.GridSearchCV(clone(estimator), grid, **options), y)
        ours = outcome(GridSearchCV(clone(estimator), grid, **options), y)
        if isinstance(theirs[0], type):
            assert ours == theirs, type(value)
            continue
        assert_same_scores(ours[0], theirs[0], value)
        assert ours[1] == theirs[1], type(value)


@pytest.mark.parametrize("value", [0.5, 1, np.float64(0.5), np.float32(0.5), np.int64(2), 2**31])
def test_usual_numbers_are_shared(value):
    for estimator, name, y in ((Ridge(), "alpha", Y), (LogisticRegression(**TIGHT), "C", SIGNS)):
        plan = Optimum(estimator, {name: [value, 1.5]}).plan(X, y)
        assert [group.kind for group in plan.groups] == [
            "moments" if name == "alpha" else "shared iterations"
        ]


def test_the_plan_says_which_value_is_left_and_why():
    plan = str(GridSearchCV(Ridge(), {"alpha": [10**400, Fraction(1, 2), 1.0, 2.0]}).plan(X, Y))
    assert "alpha=1000000000" in plan and "0" * 60 not in plan
    assert "alpha=Fraction(1, 2)" in plan


class Shrunken(RegressorMixin, BaseEstimator):
    """The mean of y, times a share."""

    _parameter_constraints: ClassVar[dict] = {"share": [float, int]}

    def __init__(self, share=1.0):
        self.share = share

    def fit(self, X, y):
        self._validate_params()
        self.mean_ = float(self.share) * np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class ShrunkenFamily(Family):
    """It looks at no type, as a family of few lines does."""

    serves, free, result, reads = (Shrunken,), frozenset({"share"}), "exact", FoldRows()

    def check(self, estimator, settings):
        if any(float(setting["share"]) < 0 for setting in settings):
            raise Unsupported("a share below 0")

    def cost(self, estimator, settings, shape):
        return Cost(shared=1.0, individual=2.0)

    def fit_many(self, estimator, settings, folded):
        for fold in map(folded.fold, range(folded.n_splits)):
            means = np.array([float(setting["share"]) for setting in settings]) * np.mean(fold.y_train)
            yield Predictions({"predict": np.repeat(means[:, None], len(fold.X_test), axis=1)})


@pytest.mark.invariant("scikit-learn takes over from a family that fails")
def test_families_of_users(registered):
    registered(ShrunkenFamily())
    for value in VALUES.values():
        grid, options = {"share": [value, 0.5, 1.0]}, {"cv": 2, "refit": False}
        theirs = outcome(model_selection.GridSearchCV(Shrunken(), grid, **options), Y)
        ours = outcome(GridSearchCV(Shrunken(), grid, **options), Y)
        assert_same_scores(ours[0], theirs[0], value)
        assert ours[1] == theirs[1], type(value)
        assert ours[0].report_.fits_shared >= 4, type(value)
