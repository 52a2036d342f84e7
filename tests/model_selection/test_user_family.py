"""A user's own family joins a search; one that fails leaves its settings to scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from manyfit.estimators import Cost, LinearAnswers, Predictions, register_affine_step
from manyfit.families import _protocol as registry
from manyfit.folds import Unsupported
from manyfit.metrics import LinearPredictors
from manyfit.model_selection import GridSearchCV
from tests.model_selection._same import X, Y, both


class Shrunk(RegressorMixin, BaseEstimator):
    """Predicts a multiple of the mean of y."""

    def __init__(self, factor=1.0, flag=False):
        self.factor = factor
        self.flag = flag

    def fit(self, X, y):
        if self.factor < 0:
            raise ValueError(f"factor={self.factor!r} is negative")
        self.value_ = self.factor * np.mean(y) + 50 * self.flag
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


class ShrunkFamily:
    serves = (Shrunk,)
    free = frozenset({"factor"})
    result = "exact"
    needs = "moments"
    calls = 0

    def check(self, estimator, settings):
        if estimator.flag or any(s["factor"] < 0 for s in settings):
            raise Unsupported("flags and negative factors are not served")

    def cost(self, estimator, settings, shape):
        return Cost(1.0, 2.0)

    def fit_many(self, estimator, settings, folded):
        for i in range(folded.n_splits):
            self.calls += 1
            view = folded.view(i)
            factors = np.array([s["factor"] for s in settings])
            at_origin = factors[:, None] * view.weighted.y_mean
            coef = np.zeros((view.origin.size, len(settings), at_origin.shape[1]))
            yield LinearAnswers(LinearPredictors(coef, at_origin, view.origin))


class RowsFamily(ShrunkFamily):
    needs = "rows"

    def fit_many(self, estimator, settings, folded):
        for i in range(folded.n_splits):
            fold = folded.fold(i)
            answers = {}
            for role, rows in (("test", fold.X_test), ("train", fold.X_train_score)):
                values = [np.full(len(rows), s["factor"] * fold.y_train.mean()) for s in settings]
                answers[role] = {"predict": np.stack(values)}
            yield Predictions(**answers)


GRID = {"factor": [0.5, 1.0, 2.0]}


@pytest.mark.parametrize("family", [ShrunkFamily, RowsFamily])
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error", ["r2", "neg_max_error"]])
def test_a_registered_family_answers(family, scoring, registered):
    registered(family())
    search = both(Shrunk(), GRID, scoring=scoring, refit=False, return_train_score=True)
    assert search.report_.fits_done == 0
    assert type(search.plan(X, Y).groups[0].family) is family


@pytest.mark.parametrize("family", [ShrunkFamily, RowsFamily])
@pytest.mark.parametrize("first", [StandardScaler(), PolynomialFeatures()])
def test_behind_steps(family, first, registered):
    registered(family())
    search = both(make_pipeline(first, Shrunk()), {"shrunk__factor": [0.5, 1.0]}, return_train_score=True)
    assert search.report_.fits_done == 0


@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_what_it_refuses_is_fitted_by_sklearn(registered):
    registered(ShrunkFamily())
    with pytest.warns(Warning, match="fits failed"):
        search = both(Shrunk(), {"factor": [1.0, 2.0, -1.0], "flag": [True, False]}, refit=False)
    assert search.report_.fits_done == 4 * 5
    assert "flags and negative factors are not served" in str(search.plan(X, Y))


@pytest.mark.invariant("Work is shared only if that costs fewer operations")
def test_dearer_than_one_by_one_is_not_shared(registered):
    class Dear(ShrunkFamily):
        def cost(self, estimator, settings, shape):
            return Cost(2.0, 1.0)

    registered(Dear())
    search = both(Shrunk(), GRID)
    assert search.report_.fits_done == 15
    assert "one by one: sharing would take more operations here" in str(search.plan(X, Y))


@pytest.mark.invariant("scikit-learn takes over from a family that fails")
@pytest.mark.parametrize("base", [ShrunkFamily, RowsFamily])
@pytest.mark.parametrize(
    "error", [Unsupported("not today"), RuntimeError("a bug"), np.linalg.LinAlgError("no")]
)
def test_a_family_that_fails_is_replaced_by_sklearn(base, error, registered):
    class Failing(base):
        def fit_many(self, estimator, settings, folded):
            raise error

    registered(Failing())
    report = both(Shrunk(), GRID, may_fail=True).report_
    assert report.fits_done == 15 and sum(report.left_to_sklearn.values()) == 15
    if type(error) is RuntimeError:
        with pytest.raises(AssertionError, match="shared work failed"):
            both(Shrunk(), GRID)


def test_a_setting_left_alone_costs_only_itself(registered):
    class Alone(ShrunkFamily):
        def fit_many(self, estimator, settings, folded):
            for answers in super().fit_many(estimator, settings, folded):
                yield LinearAnswers(answers.linear, {1: "for a reason"})

    registered(Alone())
    report = both(Shrunk(), GRID).report_
    assert report.fits_done == 5 and report.left_to_sklearn == {"for a reason": 5}


def test_an_affine_step_of_the_user():
    class Twice(StandardScaler):
        def transform(self, X, copy=None):
            return 2 * np.asarray(X)

    class TwiceStep:
        serves = (Twice,)

        def check(self, step):
            pass

        def apply(self, step, view):
            return view.scaled(np.zeros(view.n_features), np.full(view.n_features, 0.5))

    register_affine_step(TwiceStep())
    try:
        search = both(make_pipeline(Twice(), Ridge()), {"ridge__alpha": [0.1, 1.0]})
        assert search.report_.fits_done == 0 and search.report_.transformer_fits == 0
    finally:
        del registry._affine_steps[Twice]
    assert GridSearchCV(make_pipeline(Twice(), Ridge()), {"ridge__alpha": [1, 2]}).plan(X, Y).passes == 0


class PredictsFromMoments(ShrunkFamily):
    def fit_many(self, estimator, settings, folded):
        for answers in super().fit_many(estimator, settings, folded):
            yield Predictions({"predict": answers.linear.at_origin})


def test_a_family_of_moments_that_predicts_is_told_what_to_give(registered):
    registered(PredictsFromMoments())
    report = both(Shrunk(), {"factor": [0.5, 2.0]}, cv=3).report_
    why = "PredictsFromMoments needs moments and has to give LinearAnswers, not Predictions"
    assert report.left_to_sklearn == {why: 6}
