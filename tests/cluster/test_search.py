"""Searches on a cluster: each array is sent once, equal searches are merged."""

from __future__ import annotations

import gc
import os
from functools import partial
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_worker, wait
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.model_selection import cross_validate as sklearn_validate
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from manyfit.cluster import local_cluster
from manyfit.cluster.worker.content_pickle import array_key
from manyfit.folds import HostRows, register_row_source, unregister_row_source
from manyfit.model_selection import GridSearchCV, RandomizedSearchCV, cross_validate
from tests.cluster import _awkward
from tests.cluster._awkward import Awkward, fits
from tests.cluster._clusters import at_once, forking
from tests.cluster._processes import wait_for
from tests.cluster._searches import SEARCHES, TREE, X, Y, same, stored_keys

cloudpickle.register_pickle_by_value(_awkward)


@pytest.fixture(scope="module")
def client():
    with forking(), local_cluster(2) as client:
        yield client


def test_arrays_in_chunks_are_computed_by_the_workers(client):
    def on_a_worker(block):
        return block + 0 * len(get_worker().id)

    in_chunks = da.from_array(X, chunks=(100, 8)).map_blocks(on_a_worker, meta=X[:0])
    there = GridSearchCV(TREE, {"max_depth": [1, 2, 3]}).fit(in_chunks, da.from_array(Y).persist())
    same(GridSearchCV(TREE, {"max_depth": [1, 2, 3]}, client=False).fit(X, Y), there)


def test_texts_that_are_hashed_once_here_are_hashed_by_each_worker(client):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["some", "of", "these", "words", "and", "more"], size=5)) for _ in Y]
    pipeline = make_pipeline(HashingVectorizer(n_features=64), TREE)
    grid = {"decisiontreeclassifier__max_depth": [1, 3, 5]}
    local, there = (GridSearchCV(pipeline, grid, refit=False, client=where) for where in (False, client))
    assert "HashingVectorizer on all rows at once" in str(local.plan(texts, Y))
    assert "on all rows at once" not in str(there.plan(texts, Y))
    same(local.fit(texts, Y), there.fit(texts, Y))
    assert local.report_.transformer_fits == 1
    assert there.report_.transformer_fits >= 5


def test_work_is_done_on_the_workers(client, tmp_path):
    search = GridSearchCV(Awkward(folder=str(tmp_path)), {"value": [0, 1]}, cv=2, refit=False).fit(X, Y)
    assert len(fits(tmp_path)) == 4
    assert not any(name.startswith(f"{os.getpid()}-") for name in fits(tmp_path))
    GridSearchCV(Awkward(folder=str(tmp_path)), {"value": [0, 1]}, cv=2, refit=False, client=False).fit(X, Y)
    assert sum(name.startswith(f"{os.getpid()}-") for name in fits(tmp_path)) == 4
    assert search.report_.workers == 2


def test_random_search_of_a_lambda(client):
    transform = FunctionTransformer(lambda Z: Z * 2)
    pipeline = make_pipeline(transform, TREE)
    grid = {"decisiontreeclassifier__max_depth": [1, 2, 3, 4]}
    local, there = (
        RandomizedSearchCV(pipeline, grid, n_iter=3, random_state=0, client=c).fit(X, Y)
        for c in (False, client)
    )
    same(local, there)


# ------------------------------------------------------------------------------------------ placement


def _transfers(client: Client) -> int:
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


@pytest.fixture
def sent(watch):
    """What a client sends to its workers as data: by name, how many bytes."""
    parts: list[tuple[str, int]] = []

    def note(client: Client, data: Any, *args: Any, **kwargs: Any) -> None:
        parts.extend((name, getattr(part, "nbytes", 0)) for name, part in data.items())

    watch(Client, "scatter", note)
    return parts


def bytes_of(sent):
    return sum(nbytes for _, nbytes in sent)


@pytest.mark.invariant("Data are sent to a worker once, are never stale, and are freed with their owner")
def test_a_second_search_sends_nothing(client, sent):
    big, target = np.random.default_rng(0).normal(size=(20_000, 10)), np.arange(20_000) % 2
    before = _transfers(client)
    first = GridSearchCV(Awkward(), {"value": [0, 1, 2]}, cv=3, refit=False).fit(big, target)
    labels_of_folds = 2 * len(target)
    once = big.nbytes + target.nbytes + labels_of_folds
    assert bytes_of(sent) == once
    assert all(array_key(big) in keys for keys in stored_keys(client).values())
    fetched = _transfers(client) - before
    # Once by the worker that the client did not send them to; and the packages, and results.
    assert once <= fetched <= 1.1 * once
    GridSearchCV(Awkward(), {"value": [3, 4]}, cv=KFold(2), refit=False).fit(big, target)
    same(first, GridSearchCV(Awkward(), {"value": [0, 1, 2]}, cv=3, refit=False).fit(big, target))
    assert bytes_of(sent) == once
    assert _transfers(client) - before <= fetched + 0.1 * big.nbytes  # packages and results
    big[0, 0] += 1.0  # in place: another content
    GridSearchCV(Awkward(), {"value": [0]}, cv=3, refit=False).fit(big, target)
    assert bytes_of(sent) == once + big.nbytes


@pytest.mark.invariant("Data are sent to a worker once, are never stale, and are freed with their owner")
def test_data_go_with_their_owner(client):
    data, target = np.random.default_rng(1).normal(size=(20_000, 10)), np.arange(20_000) % 2
    search = GridSearchCV(Awkward(), {"value": [0, 1]}, cv=2, refit=False).fit(data, target)
    key = array_key(data)
    assert all(key in keys for keys in stored_keys(client).values())
    del data, target, search
    gc.collect()
    # Nothing of other tests either: the data of the module's searches have no large arrays.
    wait_for(lambda: not any(stored_keys(client).values()))
    wait_for(lambda: not client.who_has())


@pytest.mark.invariant("Data are sent to a worker once, are never stale, and are freed with their owner")
def test_messages_are_small(client, watch):
    """All that is submitted for a search over 16 MB, but for the data itself."""
    data, target = np.zeros((200_000, 10)), np.arange(200_000) % 2
    data[:, 0] = target
    sizes = []
    watch(
        Client, "submit", lambda self, *args, **kwargs: sizes.extend(len(a) for a in args if type(a) is bytes)
    )
    GridSearchCV(Awkward(), {"value": list(range(10))}, cv=5, refit=False).fit(data, target)
    assert 0 < sum(sizes) < 100_000


# ------------------------------------------------------------------------------------------ several at once


@pytest.mark.invariant("Scores do not depend on the number of workers")
def test_two_searches_at_once_do_not_mix(client):
    cases = [({"max_depth": [1, 2, 3]}, Y), ({"max_depth": [1, 2, 3]}, Y), ({"max_depth": [2, 5]}, Y[::-1])]
    searches = [GridSearchCV(TREE, grid, cv=3) for grid, _ in cases]
    at_once(*(partial(search.fit, X, y) for search, (_, y) in zip(searches, cases, strict=True)))
    for search, (grid, y) in zip(searches, cases, strict=True):
        same(search, GridSearchCV(TREE, grid, cv=3, client=False).fit(X, y))


def test_equal_searches_at_once_send_their_package_once(client, sent, tmp_path):
    """Or each would take what it sent from the other, whose tasks then miss it."""
    slow = Awkward(seconds=0.1, folder=str(tmp_path))
    searches = [GridSearchCV(slow, {"value": list(range(6))}, cv=2, refit=False) for _ in range(2)]

    def second() -> None:
        wait_for(lambda: fits(tmp_path))
        searches[1].fit(X, Y)

    at_once(partial(searches[0].fit, X, Y), second)
    assert len([name for name, _ in sent if name.startswith("manyfit-package")]) == 1
    same(*searches)
    wait_for(lambda: not client.who_has())


@pytest.mark.parametrize(("random_state", "merged"), [(0, True), (None, False)])
def test_only_what_is_not_drawn_is_merged(random_state, merged, client, watch):
    """Equal tasks of equal searches have equal names, unless they draw."""
    names: list[set[str]] = []

    def note(self: Client, *args: Any, key: str, **kwargs: Any) -> None:
        if not key.startswith("manyfit-"):
            names[-1].add(key)

    watch(Client, "submit", note)
    # Whole trees would not draw; of a task of several pairs, the time that it takes has a say in the name.
    tree = DecisionTreeClassifier(max_features=2, random_state=random_state)
    for _ in range(2):
        names.append(set())
        GridSearchCV(tree, {"max_depth": [1, 2]}, cv=2, refit=False).fit(X, Y)
    assert names[0]
    assert bool(names[0] & names[1]) == merged


@pytest.mark.invariant("Scores do not depend on the number of workers")
def test_a_search_within_a_task_runs_there(client):
    """It would wait for its own slot otherwise."""
    inner = GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=2)
    nested = cross_validate(inner, X, Y, cv=2)
    expected = sklearn_validate(inner.set_params(client=False), X, Y, cv=2)
    np.testing.assert_array_equal(nested["test_score"], expected["test_score"])


def test_nothing_is_left(client):
    GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=2).fit(X.tolist(), Y.tolist())
    wait_for(lambda: not any(client.processing().values()))
    wait([])
    wait_for(lambda: not [key for key in client.who_has() if "array" not in str(key)])


# ------------------------------------------------------------------------------------------ the parameter


class Nests(BaseEstimator):
    """Fits in the way of estimators that have n_jobs of their own."""

    def __init__(self, value=0):
        self.value = value

    def fit(self, X, y):
        self.processes_ = set(Parallel(n_jobs=2)(delayed(os.getpid)() for _ in range(4)))
        return self

    def score(self, X, y):
        return float(self.processes_ == {os.getpid()})


def test_n_jobs_of_an_estimator_are_threads_of_its_worker(client):
    # Warnings are errors here, and so they are on the workers.
    found = GridSearchCV(Nests(), {"value": [0, 1]}, cv=2, refit=False, error_score="raise").fit(X, Y)
    assert found.cv_results_["mean_test_score"].tolist() == [1.0, 1.0]


def test_client_parameter(client):
    search = GridSearchCV(TREE, {"max_depth": [1, 2]}, client=client)
    assert clone(search).client is client
    assert cloudpickle.loads(cloudpickle.dumps(search)).client is None
    with pytest.raises(
        TypeError,
        match=r"client should be a distributed.Client, None .* or False; got 'here'. Client\(...\) makes",
    ):
        GridSearchCV(TREE, {"max_depth": [1, 2]}, client="here").fit(X, Y)


def test_closed_client():
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        closed = Client(cluster, set_as_default=False)
        closed.close()
        with pytest.raises(ValueError, match="client is 'closed', not .* Connect another one"):
            GridSearchCV(TREE, {"max_depth": [1, 2]}, client=closed).fit(X, Y)


@pytest.mark.parametrize("cv", [3, 4])
def test_what_a_family_leaves_is_fitted_in_the_same_task(client, cv):
    """With the steps that were fitted to ask the family: once a split."""
    pipeline, grid = make_pipeline(RBFSampler(n_components=400, random_state=0), Ridge()), [0.1, 1.0, 10.0]
    params = {"param_grid": {"ridge__alpha": grid}, "cv": cv, "refit": False}
    there = GridSearchCV(pipeline, client=client, **params).fit(X[:80], Y[:80])
    here = GridSearchCV(pipeline, client=False, **params).fit(X[:80], Y[:80])
    why = {"sharing would take longer here": 3 * cv}
    assert there.report_.left_to_sklearn == here.report_.left_to_sklearn == why
    assert there.report_.transformer_fits == here.report_.transformer_fits == cv
    np.testing.assert_array_equal(there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])


def test_workers_read_an_x_of_any_class_through_the_source_that_this_process_registered(client, tmp_path):
    class NumberFile:
        path, shape, dtype = tmp_path / "X", X.shape, X.dtype

        def __len__(self):
            return self.shape[0]

    class FileRows(HostRows):
        def __init__(self, X):
            self.path, self.shape, self.dtype = X.path, X.shape, X.dtype

        def take(self, rows):
            return np.array(np.memmap(self.path, self.dtype, "r", shape=self.shape)[rows])

    X.tofile(tmp_path / "X")
    register_row_source(lambda X: isinstance(X, NumberFile), FileRows)
    try:
        for name in ("moments", "passes"):
            search = GridSearchCV(*SEARCHES[name], refit=False, client=client, sharing="optimum")
            search.fit(NumberFile(), Y)
            assert search.report_.fits_done == 0 and search.report_.workers == 2
            expected = GridSearchCV(*SEARCHES[name], refit=False, sharing="optimum").fit(X, Y)
            scores = [one.cv_results_["mean_test_score"] for one in (search, expected)]
            np.testing.assert_allclose(*scores, rtol=1e-10)
        with pytest.raises(
            TypeError, match="manyfit knows no work that fits of .* cannot read X, which FileRows reads"
        ):
            GridSearchCV(MLPClassifier(), {}, refit=False, client=client).fit(NumberFile(), Y)
    finally:
        unregister_row_source(FileRows)
