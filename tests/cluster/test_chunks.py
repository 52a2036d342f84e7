"""Workers that read and sum the chunks of X: the bits of a local run, where the chunks lie, and deaths."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import dask
import dask.array as da
import dask.dataframe
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
import zarr
from distributed import wait
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as SklearnScaler

from manyfit.cluster.chunk_workers import cut_groups
from manyfit.cluster.pool.run import KEPT_RUNS, keep_arrays
from manyfit.estimators import Ridge, StandardScaler
from manyfit.folds import Blocks, as_chunk_rows
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.behaviour.chunks._files import limit_for, memory_map
from tests.cluster._clusters import by_hand, kill, within

rng = np.random.default_rng(0)
N, P = 799, 5
X = rng.normal(size=(N, P)) * [1.0, 10.0, 0.1, 1.0, 5.0] + 3.0
Y = X @ rng.normal(size=P) + rng.normal(size=N)
LABELS = np.where(np.median(Y) < Y, "high", "low")
FRAME = pd.DataFrame(X, columns=list("abcde"))
ROWS = 40  # of a chunk; 20 reads, which are three groups
LIMIT = limit_for(X, ROWS)
OWN = make_pipeline(StandardScaler(), Ridge())
SEARCHES: dict[str, tuple[Any, dict[str, list[Any]], Any, dict[str, Any]]] = {
    "moments": (OWN, {"ridge__alpha": [0.1, 10.0]}, Y, {}),
    "shuffled": (
        make_pipeline(SklearnScaler(), SklearnRidge()), {"ridge__alpha": [0.1, 10.0]}, Y,
        {"refit": False, "cv": KFold(3, shuffle=True, random_state=0), "scoring": "neg_mean_absolute_error"},
    ),
    "iterations": (
        make_pipeline(SklearnScaler(), LogisticRegression(tol=1e-2)),
        {"logisticregression__C": [1e-3, 1e-2]}, LABELS,
        {"refit": False, "scoring": "neg_log_loss", "cv": 2, "sharing": "optimum"},
    ),
}  # fmt: skip
KINDS = ["zarr", "hdf5", "memory map", "persisted", "dask", "parquet", "unknown chunks", "frame"]


def given_as(kind: str, folder: Any) -> Any:
    """X in chunks of a kind."""
    if kind == "zarr":
        array = zarr.create_array(folder / "X.zarr", shape=X.shape, chunks=(ROWS, P), dtype=float)
        array[...] = X
        return array
    if kind == "hdf5":
        with h5py.File(folder / "X.h5", "w") as file:
            file.create_dataset("in/X", data=X, chunks=(ROWS, P))
        return h5py.File(folder / "X.h5", "r")["in/X"]
    if kind == "memory map":
        return as_chunk_rows(memory_map(np.r_[X[:7], X], folder)[7:], LIMIT)
    if kind == "parquet":
        pa.parquet.write_table(pa.Table.from_pandas(FRAME), folder / "X.parquet", row_group_size=ROWS)
        return folder / "X.parquet"
    lazy = da.from_array(X, chunks=(ROWS, 3))
    lazy = lazy.map_blocks(np.positive, dtype=float)
    if kind == "persisted":
        lazy = lazy.persist()
        wait(lazy)
    if kind == "unknown chunks":
        return lazy[da.ones(N, chunks=ROWS, dtype=bool)].persist()
    if kind == "frame":
        return dask.dataframe.from_map(
            lambda k: FRAME.iloc[50 * k : 50 * k + 50], range(30), meta=FRAME.iloc[:0]
        )
    return lazy


def _fit(name: str, given: Any, **options: Any) -> GridSearchCV:
    model, grid, y, more = SEARCHES[name]
    return GridSearchCV(model, grid, memory_limit=LIMIT, **more, **options).fit(given, y)


def _scores(search: Any) -> np.ndarray:
    return np.stack([v for k, v in sorted(search.cv_results_.items()) if k.startswith("split")])


@pytest.fixture(scope="module")
def client():
    with within(3) as client:
        yield client


@pytest.mark.cases(3)
@pytest.mark.invariant("workers that sum chunks give the bits of a search in one process")
@pytest.mark.parametrize(("kind", "name"), covering(KINDS, list(SEARCHES), strength=1))
def test_the_bits_of_a_local_run(kind, name, client, tmp_path):
    given = given_as(kind, tmp_path)
    with dask.config.set(scheduler="threads"):
        local = da.from_array(X, chunks=(ROWS, 3)) if kind in ("persisted", "unknown chunks") else given
        local = local[da.ones(N, chunks=ROWS, dtype=bool)] if kind == "unknown chunks" else local
        alone = _fit(name, local, client=False)
    search = _fit(name, given, client=client)
    np.testing.assert_array_equal(_scores(search), _scores(alone))
    assert search.report_.fits_done == 0
    if name == "moments":
        np.testing.assert_array_equal(search.best_estimator_[-1].coef_, alone.best_estimator_[-1].coef_)
    plan = GridSearchCV(OWN, {}, memory_limit=LIMIT, client=client).plan(given, Y)
    assert "on the workers of the client, in" in str(plan), plan


def test_rows_are_read_on_workers_and_the_plan_says_what_they_hold(client):
    lazy = da.from_array(X, chunks=(ROWS, P)).map_blocks(np.positive, dtype=float)
    search = GridSearchCV(OWN, {}, memory_limit=LIMIT, client=client)
    plan = search.plan(lazy, Y)
    assert plan.reading[1] == "a task holds 3,200 bytes of X at most, beside its sums, y and weights"
    assert "in 20 parts, on the workers of the client, in 3 tasks" in plan.reading[0]
    search.fit(lazy, Y)
    assert not [key for key in client.who_has() if "manyfit" in str(key)]


def test_chunks_that_workers_keep_are_not_moved(client):
    lazy = da.from_array(X, chunks=(ROWS, P)).map_blocks(np.positive, dtype=float).persist()
    wait(lazy)
    assert "holds 12,800 bytes of X" in GridSearchCV(OWN, {}, memory_limit=LIMIT).plan(lazy, Y).reading[1]
    search = _fit("moments", lazy)
    np.testing.assert_allclose(_scores(search), _scores(_fit("moments", X)), rtol=1e-12)


@pytest.mark.parametrize("persisted", [False, True], ids=["lazy", "persisted"])
def test_sparse_chunks(persisted, client):
    own = np.random.default_rng(0)
    entries = scipy.sparse.csr_array(
        np.where(own.uniform(size=(N, 30)) < 0.2, own.uniform(size=(N, 30)), 0.0)
    )
    meta = scipy.sparse.csr_array((0, 0))

    def chunked(columns):
        return da.from_array(entries.toarray(), chunks=(ROWS, columns)).map_blocks(
            scipy.sparse.csr_array, meta=meta
        )

    def fit(given, model, y, **options):
        search = GridSearchCV(model, {}, refit=False, cv=2, memory_limit=12_000, sharing="optimum", **options)
        return search.fit(given, y)

    lazy = chunked(20)
    if persisted:
        lazy = lazy.persist()
        wait(lazy)
    plan = GridSearchCV(LogisticRegression(), {}, refit=False, memory_limit=12_000).plan(lazy, LABELS)
    assert "on the workers of the client, in" in str(plan), plan
    model = make_pipeline(TfidfTransformer(), LogisticRegression(tol=1e-2))
    search = fit(lazy, model, LABELS, client=client, scoring="neg_log_loss")
    with dask.config.set(scheduler="threads"):
        alone = fit(chunked(20), model, LABELS, client=False, scoring="neg_log_loss")
    np.testing.assert_array_equal(_scores(search), _scores(alone))
    counted = fit(lazy, MultinomialNB(), LABELS, client=client)
    expected = SklearnSearch(MultinomialNB(), {}, refit=False, cv=2).fit(entries, LABELS)
    np.testing.assert_array_equal(_scores(counted), _scores(expected))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            Blocks(lambda: iter(np.array_split(X, 50))),
            "a function yields its blocks one after the other, and no worker can begin amid them",
        ),
        (da.from_array(X, chunks=(ROWS, P)), "its chunks are in the memory of this process"),
        (zarr.array(X, chunks=(ROWS, P)), "its store is the memory of this process"),
    ],
    ids=["blocks", "dask", "zarr"],
)
def test_what_workers_cannot_read_is_read_here(given, reason, client):
    search = GridSearchCV(OWN, {}, memory_limit=LIMIT, client=client)
    assert search.plan(given, Y).reading[0].endswith(f"and not by the workers of the client: {reason}")
    np.testing.assert_allclose(
        _scores(search.fit(given, Y)), _scores(GridSearchCV(OWN, {}).fit(X, Y)), rtol=1e-12
    )


def test_workers_that_find_another_file_do_not_read_it(client, tmp_path, monkeypatch):
    given = given_as("hdf5", tmp_path)
    path = os.path.abspath
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.create_dataset("in/X", data=X + 1.0, chunks=(ROWS, P))
    for name, reason in (
        ("other.h5", "finds other rows under its name"),
        ("none.h5", "cannot open it: File"),
    ):
        monkeypatch.setattr(os.path, "abspath", lambda _, name=name: path(tmp_path / name))
        plan = GridSearchCV(OWN, {}, memory_limit=LIMIT, client=client).plan(given, Y)
        monkeypatch.undo()
        assert reason in plan.reading[0] and "in this process" in plan.reading[0]


def test_nan_is_named_by_its_row(client):
    values = X.copy()
    values[407, 2] = np.nan
    lazy = da.from_array(values, chunks=(ROWS, P)).map_blocks(np.positive, dtype=float)
    with pytest.raises(ValueError, match="contains NaN or infinity, first in row 407 of 799"):
        _fit("moments", lazy, client=client)


def test_tasks_of_equal_size():
    assert cut_groups(10, 1) == [range(k, min(k + 2, 10)) for k in range(0, 10, 2)]
    assert cut_groups(3, 8) == [range(1), range(1, 2), range(2, 3)]
    sizes = [len(one) for one in cut_groups(4000, 400)]
    assert len(sizes) == 2000 and set(sizes) == {2}
    assert cut_groups(10, 8, 3) == [range(0, 4), range(4, 8), range(8, 10)]
    assert cut_groups(3, 8, 100) == [range(3)]  # a small X is one task


def _dying_once(block, process, mark):
    """A block that is computed, not in some process; the first that computes the one of row 400 dies."""
    assert os.getpid() != process
    if (block[0] == X[10 * ROWS]).all() and not mark.exists():
        mark.touch()
        kill([os.getpid()])
    return block


@pytest.mark.thorough
def test_a_worker_that_dies_costs_its_chunks(tmp_path):
    lazy = da.from_array(X, chunks=(ROWS, P)).map_blocks(
        _dying_once, os.getpid(), tmp_path / "mark", dtype=float, meta=np.empty((0, P))
    )
    with by_hand(tmp_path, n_workers=2) as client:
        search = _fit("moments", lazy, client=client)
        assert len(client.scheduler_info()["workers"]) == 1
    np.testing.assert_array_equal(
        _scores(search), _scores(_fit("moments", as_chunk_rows(da.from_array(X, chunks=(ROWS, P)), LIMIT)))
    )


def test_chunks_that_are_computed_of_kept_ones_are_read_here(client):
    kept = da.from_array(X, chunks=(ROWS, P)).map_blocks(np.positive, dtype=float).persist()
    wait(kept)
    search = GridSearchCV(OWN, {}, memory_limit=LIMIT, client=client)
    assert search.plan(kept * 2.0, Y).reading[0].endswith("its chunks are computed of data that workers keep")
    found = _scores(search.fit(kept * 2.0, Y))
    np.testing.assert_allclose(found, _scores(GridSearchCV(OWN, {}).fit(X * 2.0, Y)), rtol=1e-12)


def test_arrays_of_single_passes_do_not_pile_up_on_the_cluster():
    in_use, kept = Counter(), {}

    class Uses:
        use = in_use.update
        stop_using = in_use.subtract

    for k in range(10):
        keep_arrays(Uses, {"y", f"coefficients {k}"}, kept)
    assert +in_use == Counter(kept.keys()) and len(kept) == 1 + KEPT_RUNS and "y" in kept
