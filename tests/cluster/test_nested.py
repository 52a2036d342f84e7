"""Boosting and neighbours on a cluster: early stopping by the fold, and the workers of each split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold
from sklearn.neighbors import RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBRegressor

from manyfit.model_selection import GridSearchCV
from tests._covering import covering, spread
from tests.cluster._clusters import within
from tests.cluster._searches import same
from tests.upstream.test_successive_halving import _SEARCHES

X, Y = make_regression(240, 6, n_informative=2, noise=150.0, random_state=0)
WEIGHTS = np.random.default_rng(2).integers(1, 5, 240).astype(float)
GRID = {"learning_rate": [0.1, 0.5]}
BOOSTERS = [
    XGBRegressor(n_estimators=40, early_stopping_rounds=3, n_jobs=1),
    LGBMRegressor(n_estimators=40, early_stopping_round=3, n_jobs=1, verbose=-1, min_child_samples=5),
    HistGradientBoostingRegressor(max_iter=40, early_stopping=True, n_iter_no_change=3, random_state=0),
]


@pytest.fixture(params=[1, 2])
def client(request: pytest.FixtureRequest) -> Any:
    with within(request.param) as client:
        yield client


def addresses(client: Any) -> set[str]:
    return set(client.scheduler_info(n_workers=-1)["workers"])


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("model", "steps", "client"), covering(BOOSTERS, [False, True], [1, 2], strength=1), indirect=["client"]
)
def test_fits_stop_on_workers_where_they_stop_here(model, steps, client):
    name = f"{type(model).__name__.lower()}__"
    searched, grid = model, GRID
    given = {"sample_weight": WEIGHTS}
    if steps:
        searched = make_pipeline(StandardScaler(), model)
        grid = {name + key: value for key, value in GRID.items()}
        given = {name + "sample_weight": WEIGHTS}
    local, there = (
        GridSearchCV(searched, grid, cv=3, early_stopping="fold", client=where).fit(X, Y, **given)
        for where in (False, client)
    )
    same(local, there)
    np.testing.assert_array_equal(local.predict(X), there.predict(X))
    assert local.report_.refit_n_iter == there.report_.refit_n_iter
    assert there.cv_results_["mean_best_n_iter"].max() < 40
    assert set(there.report_.split_workers) == {0, 1, 2} and not local.report_.split_workers
    assert {one for found in there.report_.split_workers.values() for one in found} <= addresses(client)


def test_the_report_says_which_worker_made_the_fits_of_a_split(client):
    grid = {"radius": [20.0, 30.0], "weights": ["uniform", "distance"]}
    pipeline = make_pipeline(StandardScaler(), RadiusNeighborsRegressor())
    grid = {f"radiusneighborsregressor__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, grid, cv=4, client=client).fit(X, Y)
    assert search.report_.fits_shared == 16
    found = search.report_.split_workers
    assert sorted(found) == [0, 1, 2, 3] and {len(one) for one in found.values()} == {1}
    assert {one for (one,) in found.values()} <= addresses(client)


class Halving(_SEARCHES["HalvingGridSearchCV"]):  # type: ignore[misc]
    """scikit-learn's halving search, on manyfit's base class."""

    early_stopping = "fold"

    def __init__(self, estimator: Any, param_grid: Any, client: Any, random_state: int = 0) -> None:
        super().__init__(
            estimator, param_grid, cv=3, factor=2, random_state=random_state, min_resources=60, refit=False
        )
        self.client = client


@pytest.mark.parametrize("model", spread(BOOSTERS, 1))
@pytest.mark.parametrize("client", [2], indirect=True)
def test_a_halving_search_stops_each_fit_by_its_own_part_of_the_rows(model, client):
    grid = {"learning_rate": [0.05, 0.1, 0.3, 0.5]}
    local, there = (Halving(model, grid, where).fit(X, Y) for where in (False, client))
    same(local, there)
    results = local.cv_results_
    assert list(results["n_resources"]) == [60] * 4 + [120] * 2 + [240]
    last = len(results["params"]) - 1
    for i, (train, test) in enumerate(KFold(3).split(X)):
        own = clone(model).set_params(**results["params"][last])
        if isinstance(own, HistGradientBoostingRegressor):
            own.fit(X[train], Y[train], X_val=X[test], y_val=Y[test])
        elif isinstance(own, XGBRegressor):
            own.fit(X[train], Y[train], eval_set=[(X[test], Y[test])], verbose=False)
        else:
            own.fit(X[train], Y[train], eval_X=X[test], eval_y=Y[test])
        found = results[f"split{i}_test_score"][last]
        assert found == pytest.approx(own.score(X[test], Y[test]), rel=1e-5)  # the search shuffles the rows
        assert results[f"split{i}_best_n_iter"][last] < 40
