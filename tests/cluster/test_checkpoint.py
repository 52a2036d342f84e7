"""A search on a cluster that was interrupted goes on, there or in one process."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

from manyfit.cluster import WorkerDied
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.running.cluster import _dask_executor as _on_cluster
from tests._covering import covering
from tests.cluster._awkward import Awkward
from tests.cluster._clusters import within
from tests.cluster._searches import SEARCHES, X, Y, same


@pytest.fixture(scope="module")
def inside():
    with within(2) as client:
        yield client


@pytest.mark.cases(3)
@pytest.mark.invariant("A killed search continues in another process and makes only the missing fits")
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "there"), covering(SEARCHES, [True, False], strength=1))
def test_an_interrupted_search_goes_on(kind, there, inside, tmp_path, monkeypatch):
    estimator, grid = SEARCHES[kind]
    search = GridSearchCV(estimator, grid, cv=4, client=False, return_train_score=True)
    whole = search.fit(X, Y)
    search = GridSearchCV(estimator, grid, cv=4, client=inside, return_train_score=True)
    search.set_params(checkpoint=tmp_path / "file")
    add, arrived = ResultSink.add, []

    def stops(self, results, **how):
        add(self, results, **how)
        if self._checkpoint is not None:  # not on a worker
            arrived.append(len(results))
            if len(arrived) == 2 or kind in ("moments", "passes"):
                raise KeyboardInterrupt

    monkeypatch.setattr(ResultSink, "add", stops)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    monkeypatch.setattr(ResultSink, "add", add)
    assert len(search.partial_results_) == sum(arrived) > 0
    search.set_params(client=inside if there else False).fit(X, Y)
    assert search.report_.fits_restored == sum(arrived)
    left = whole.report_.fits_requested - sum(arrived)
    report = search.report_
    assert report.fits_done - report.family_fits + report.fits_shared == left
    same(whole, search)
    search.fit(X, Y)
    assert search.report_.fits_restored == whole.report_.fits_requested
    same(whole, search)


def test_what_killed_a_worker_is_tried_again(inside, tmp_path, monkeypatch):
    """Another cluster may have the memory for it."""
    real = _on_cluster.DaskExecutor._results

    def one_dies(of, items):
        for item, part in real(of, items):
            yield item, WorkerLost(WorkerDied("as told")) if item.candidates == (1,) else part

    monkeypatch.setattr(_on_cluster.DaskExecutor, "_results", one_dies)
    search = GridSearchCV(Awkward(), {"value": [0, 1, 2]}, cv=2, refit=False, error_score=-1.0, client=inside)
    search.set_params(checkpoint=tmp_path / "file")
    for restored in (0, 4):
        with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 6"):
            search.fit(X, Y)
        assert np.array_equal(search.cv_results_["mean_test_score"] == -1.0, [False, True, False])
        assert (search.report_.fits_restored, search.report_.fits_done) == (restored, 6 - restored)
    monkeypatch.setattr(_on_cluster.DaskExecutor, "_results", real)
    assert search.fit(X, Y).report_.fits_done == 2
    assert np.all(search.cv_results_["mean_test_score"] >= 0)
