"""Halving searches on a cluster."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV as TheirGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer
from sklearn.tree import DecisionTreeRegressor

from manyfit.cluster.pool.kept_values import KeptValues
from manyfit.families.nested._continued_fits import NOT_KEPT
from manyfit.model_selection import HalvingGridSearchCV
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running.cluster._rounds import ClusterStore
from manyfit.model_selection.strategies import _individual_fits
from tests._covering import spread
from tests._same_results import assert_same_results
from tests.cluster._clusters import within
from tests.cluster._processes import wait_for

X, Y = make_regression(240, 6, n_informative=2, noise=50.0, random_state=0)
GRID = {"max_depth": [1, 2, 4, 8], "min_samples_leaf": [1, 4]}


def test_rounds_run_on_the_workers(tmp_path):
    def halving(**params):
        tree = DecisionTreeRegressor(random_state=0)
        return HalvingGridSearchCV(tree, GRID, cv=3, factor=2, random_state=0, **params).fit(X, Y)

    here = halving(client=False)
    with within(2) as client:
        there = halving(client=client, checkpoint=tmp_path / "checkpoint")
        assert_same_results(there, here, rtol=0, atol=0)
        assert set(there.report_.split_workers) == {0, 1, 2}
        assert there.report_.fits_done == 3 * sum(there.n_candidates_)
        again = halving(client=client, checkpoint=tmp_path / "checkpoint")
    assert again.report_.fits_restored == again.report_.fits_requested
    np.testing.assert_array_equal(again.predict(X), here.predict(X))


TREES = {"max_depth": [1, None], "max_features": [1, 3]}
CASES = {
    "forest": (RandomForestRegressor(random_state=0), TREES, "n_estimators"),
    "histograms": (
        HistGradientBoostingRegressor(random_state=0, max_features=0.5), {"max_depth": [1, 2, 3, None]},
        "max_iter",
    ),
    "behind steps": (
        make_pipeline(QuantileTransformer(n_quantiles=9), RandomForestRegressor(random_state=0)),
        {f"randomforestregressor__{name}": values for name, values in TREES.items()},
        "randomforestregressor__n_estimators",
    ),
}  # fmt: skip


def growing(kind, cls=HalvingGridSearchCV, **params):
    model, grid, resource = CASES[kind]
    sizes = {"resource": resource, "max_resources": 8, "min_resources": 2, "factor": 2}
    return cls(clone(model), grid, cv=2, return_train_score=False, **sizes, **params)


def kept(client):
    return [key for key in client.cluster.scheduler.tasks if str(key).startswith("manyfit-kept")]


@pytest.mark.parametrize("kind", spread(CASES, 1))
def test_models_of_a_round_stay_on_workers_for_the_next_one(kind):
    theirs = growing(kind, TheirGrid).fit(X, Y)
    with within(2) as client:
        ours = growing(kind).fit(X, Y)
        assert_same_results(ours, theirs, rtol=1e-12, atol=0)
        report = ours.report_
        # On each of two splits two models kept 2 members, and one of them 4.
        assert (report.fits_continued, report.members_kept, report.fitted_anew) == (6, 16, {})
        wait_for(lambda: not kept(client), f"the release of {kept(client)}")
        little = growing(kind, memory_limit=100).fit(X, Y)
        assert little.report_.members_kept == 0 and sum(little.report_.fitted_anew.values()) == 6
        assert_same_results(little, ours, rtol=0, atol=0)


def test_fits_that_are_handed_back_go_on_all_the_same(monkeypatch):
    monkeypatch.setattr(_individual_fits, "HAND_BACK_S", 0.0)
    monkeypatch.setattr(_individual_fits, "HAND_BACK", 0.0)
    with within(2):
        ours = growing("behind steps").fit(X, Y)
    assert (ours.report_.fits_continued, ours.report_.members_kept) == (6, 16)
    assert_same_results(ours, growing("behind steps", client=False).fit(X, Y), rtol=0, atol=0)


def test_a_worker_that_dies_between_rounds_costs_its_models(monkeypatch):
    here, plain, rounds = growing("forest", client=False).fit(X, Y), ClusterStore.next_round, []
    with within(1) as client:
        cluster = client.cluster

        def next_round(store):
            plain(store)
            rounds.append(len(kept(client)))
            if len(rounds) == 2:
                cluster.scale(2)
                client.wait_for_workers(2)
                first = next(ws.address for ws in cluster.scheduler.workers.values() if ws.has_what)
                cluster.sync(cluster.scheduler.remove_worker, first, stimulus_id="test")

        monkeypatch.setattr(ClusterStore, "next_round", next_round)
        there = growing("forest").fit(X, Y)
    assert_same_results(there, here, rtol=0, atol=0)
    assert rounds[:2] == [0, 8] and len(rounds) == 3
    # The four fits of the second round have lost their models, the two of the third go on from 4 trees.
    assert there.report_.fitted_anew == {NOT_KEPT: 4}
    assert (there.report_.fits_continued, there.report_.members_kept) == (2, 8)


def test_a_model_that_is_too_large_leaves_the_space_to_smaller_ones(monkeypatch):
    monkeypatch.setattr(KeptValues, "future", lambda values, key: key)
    monkeypatch.setattr(KeptValues, "memory_of_workers", lambda values: {"w": 40.0})
    store = ClusterStore(SimpleNamespace(id="client"), "n_estimators", memory=1000)
    monkeypatch.setattr(KeptValues, "usable", lambda values, futures: sorted(futures))
    store.next_round()
    job = SimpleNamespace(candidates=[{"max_depth": depth} for depth in (None, 1, 2)])
    for c, n_bytes in enumerate((99, 9, 2)):  # a quarter of the worker's memory is 10 bytes
        pair = (c, 0)
        store.note(job, TaskResult({pair: {}}, kept={pair: {f"model {c}": n_bytes}}, worker="w"))
    store.next_round()
    item = SimpleNamespace(pairs=[(0, 0), (1, 0), (2, 0)])
    assert store.inputs(job, item, tries=0) == ["model 1"]
