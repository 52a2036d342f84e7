"""A user's own family joins a search; one that fails leaves its settings to scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from manyfit.estimators import (
    Cost,
    LinearAnswers,
    register_affine_step,
)
from manyfit.families.protocol import _registry as registry
from manyfit.folds import Unsupported
from manyfit.model_selection import GridSearchCV
from tests._same_results import X, Y, both
from tests.behaviour.families._user_families import GRID, RowsFamily, Shrunk, ShrunkFamily


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
    assert "one by one: sharing would take longer here" in str(search.plan(X, Y))


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
        assert set(report.left_to_sklearn) == {"shared work failed (Failing.fit_many: RuntimeError: a bug)"}
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

    step = register_affine_step(TwiceStep())
    try:
        search = both(make_pipeline(Twice(), Ridge()), {"ridge__alpha": [0.1, 1.0]})
        assert search.report_.fits_done == 0 and search.report_.transformer_fits == 0
    finally:
        registry._affine_steps.remove(step, Twice)
    assert GridSearchCV(make_pipeline(Twice(), Ridge()), {"ridge__alpha": [1, 2]}).plan(X, Y).passes == 0


@pytest.mark.parametrize("base", [ShrunkFamily, RowsFamily])
def test_the_cost_is_that_of_the_settings(base, registered):
    seen = []

    class Priced(base):
        def cost(self, estimator, settings, shape):
            seen.append([setting["factor"] for setting in settings])
            return super().cost(estimator, settings, shape)

    registered(Priced())
    GridSearchCV(Shrunk(), GRID).plan(X, Y)
    assert seen == [GRID["factor"]]


class ScoresItself(Shrunk):
    def score(self, X, y):
        return -float(np.abs(y - self.predict(X)).mean())


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_an_estimators_own_score_is_its_own(scoring, registered):
    class Family(RowsFamily):
        serves = (ScoresItself,)

    registered(Family())
    search = both(ScoresItself(), GRID, scoring=scoring)
    own = "ScoresItself has a score method of its own" in search.report_.groups[0]["reason"]
    assert (own, search.report_.fits_done) == ((True, 15) if scoring is None else (False, 0))


def test_each_group_is_scored_by_its_own_estimator(registered):
    """Groups that moments serve are scored by R2 here, and by a score of their own there."""

    class Family(ShrunkFamily):
        serves = (Shrunk, ScoresItself)

    registered(Family())
    grid = [{"last": [Shrunk(), Ridge()]}, {"last": [Shrunk()], "last__factor": [0.5, 2.0]}]
    search = both(Pipeline([("first", StandardScaler()), ("last", Shrunk())]), grid, refit=False)
    assert search.report_.fits_done == 0
    grid[0]["last"].append(ScoresItself())
    search = both(Pipeline([("first", StandardScaler()), ("last", Shrunk())]), grid, refit=False)
    assert search.report_.fits_done == 5
