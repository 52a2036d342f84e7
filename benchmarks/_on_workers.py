"""The contenders on a cluster (manyfit, scikit-learn by joblib, dask-ml), and the cluster that they share.

All use Dask's current client.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from threadpoolctl import threadpool_limits

from benchmarks._benchmark import Contender, Kind
from benchmarks._contenders import Array, read_manyfit, read_search
from benchmarks._task import Task

WORKERS = 2
# Limits on the threads of worker processes, joblib's included.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

OURS = "manyfit on the cluster"
OURS_AGAIN = "manyfit on the cluster, data there"
WITH_CHECKPOINT = "manyfit on the cluster, checkpoint"
HERE = "manyfit here"
HERE_WITH_CHECKPOINT = "manyfit here, checkpoint"
JOBLIB_DASK = "scikit-learn on joblib's dask"
DASK_ML = "dask-ml on the cluster"


@contextmanager
def two_workers() -> Iterator[Any]:
    """Two worker processes with one task and one thread each; yields the current client."""
    from manyfit.cluster import local_cluster

    with (
        mock.patch.dict(os.environ, dict.fromkeys(_THREADS, "1")),
        local_cluster(WORKERS, threads_per_worker=1, gpu=False) as client,
    ):
        yield client


@contextmanager
def one_thread_each() -> Iterator[Any]:
    """The same, with one thread in this process too, so that fits are the same wherever they run."""
    with two_workers() as client, threadpool_limits(1):
        yield client


def _client() -> Any:
    from distributed import Client

    return Client.current()


def _search(task: Task, client: Any, **options: Any) -> Any:
    from manyfit.model_selection import GridSearchCV

    return GridSearchCV(
        task.estimator, task.grid, cv=task.cv, scoring=task.scoring, refit=False, client=client, **options
    )


def manyfit(kind: Kind = "ours", *, again: bool = False) -> Contender:
    """manyfit on the workers; with `again`, right after the same search on the same data."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        return _search(task, _client()).fit(X, y)

    if again:
        note = "the second of two equal searches"
        return Contender(OURS_AGAIN, kind, fit, read_manyfit, in_process=False, note=note, prepare=fit)
    return Contender(OURS, kind, fit, read_manyfit, in_process=False)


def manyfit_here() -> Contender:
    """manyfit in this process, beside the cluster, with all of its threads."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        return _search(task, False).fit(X, y)

    return Contender(HERE, "other", fit, read_manyfit)


def manyfit_with_checkpoint(*, here: bool) -> Contender:
    """manyfit with a new checkpoint for every run."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "search.checkpoint"
            return _search(task, False if here else _client(), checkpoint=path).fit(X, y)

    name = HERE_WITH_CHECKPOINT if here else WITH_CHECKPOINT
    return Contender(name, "other" if here else "ours", fit, read_manyfit, in_process=here)


def joblib_dask() -> Contender:
    """scikit-learn's GridSearchCV through joblib's own backend for Dask."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        from joblib import parallel_config
        from sklearn.model_selection import GridSearchCV

        search = GridSearchCV(
            task.estimator, task.grid, cv=task.cv, scoring=task.scoring, n_jobs=-1, refit=False
        )
        with parallel_config(backend="dask"):
            return search.fit(X, y)

    return Contender(JOBLIB_DASK, "scikit-learn", fit, read_search, in_process=False)


def dask_ml() -> Contender:
    """dask-ml's GridSearchCV on the workers."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        from dask_ml.model_selection import GridSearchCV  # type: ignore[import-untyped]

        search = GridSearchCV(
            task.estimator,
            dict(task.grid),
            cv=task.cv,
            scoring=task.scoring,
            refit=False,
            scheduler=_client(),
            iid=False,  # by default it weights the splits by their rows, scikit-learn does not
        )
        return search.fit(X, y)

    return Contender(DASK_ML, "other", fit, read_search, in_process=False)
