"""`explain` says what manyfit would share of a search, and changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV

import manyfit
from manyfit.model_selection import GridSearchCV as Shared

X, Y = load_diabetes(return_X_y=True)
GRID = {"alpha": [0.1, 1.0]}


@pytest.mark.parametrize("search", [GridSearchCV(Ridge(), GRID), RandomizedSearchCV(Ridge(), GRID, n_iter=2)])
def test_the_plan_is_that_of_manyfits_search_and_the_search_stays_as_it_is(search: Any) -> None:
    before = dict(vars(search))
    plan = manyfit.explain(search, X, Y)
    assert (
        str(plan)
        == str(Shared(Ridge(), GRID).plan(X, Y))
        == str(manyfit.explain(Shared(Ridge(), GRID), X, Y))
    )
    assert vars(search) == before and not hasattr(search, "best_params_")


def test_drawing_for_the_plan_leaves_the_searchs_own_draws() -> None:
    state = np.random.RandomState(0)
    search = RandomizedSearchCV(
        Ridge(), GRID, n_iter=2, cv=KFold(3, shuffle=True, random_state=state), random_state=state
    )
    before = state.get_state()[1:3]
    manyfit.explain(search, X, Y)
    np.testing.assert_equal(state.get_state()[1:3], before)
    once = GridSearchCV(Ridge(), GRID, cv=KFold(3).split(X))
    with pytest.raises(TypeError, match="would use up the splits of GridSearchCV.*give a list"):
        manyfit.explain(once, X, Y)
    assert once.fit(X, Y).n_splits_ == 3


def test_it_says_what_to_set() -> None:
    forest = GridSearchCV(RandomForestRegressor(), {"n_estimators": [5, 10]})
    advice = "Set random_state of RandomForestRegressor to an integer: the largest fit of a split then holds"
    assert advice in str(manyfit.explain(forest, X, Y))
    same = clone(forest).set_params(estimator__random_state=0)
    assert manyfit.explain(same, X, Y).advice == ()
    depths = clone(forest).set_params(param_grid={"max_depth": [1, 2]})  # which share nothing anyway
    assert manyfit.explain(depths, X, Y).advice == ()


class OwnFit(GridSearchCV):
    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        return super().fit(X, y, **params)


class OwnTable(GridSearchCV):
    def _format_results(self, *args: Any) -> Any:
        return super()._format_results(*args)


def test_what_manyfit_does_not_run() -> None:
    for search, why in (
        (OwnFit(Ridge(), GRID), "its class overrides fit"),
        (OwnTable(Ridge(), GRID), "OwnTable overrides _format_results"),
        (Ridge(), "explain takes a grid, randomized or halving search .* got a Ridge"),
        (GridSearchCV, "got the class GridSearchCV. Pass the search itself"),
    ):
        with pytest.raises(TypeError, match=why):
            manyfit.explain(search, X, Y)
    with manyfit.installed():
        assert "Shared work answers" in str(manyfit.explain(GridSearchCV(Ridge(), GRID), X, Y))
