"""Data of tasks travel once to each worker, and are never stale."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from distributed import Client, get_worker
from joblib import Parallel, delayed, parallel_config
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from manyfit.cluster.pool.placement import get_placement
from manyfit.joblib_backend import _batch_pickle
from manyfit.joblib_backend._batch_pickle import REREAD_BYTES, BatchPacker
from tests._covering import spread
from tests.joblib_backend._calls import LARGE, total

pytestmark = pytest.mark.slow


@pytest.fixture
def sent(watch: Any) -> Any:
    """What a client scatters: parts, and their bytes, since the last time."""
    sizes: list[int] = []

    def note(client: Client, data: Any, *args: Any, **kwargs: Any) -> None:
        sizes.extend(getattr(part, "nbytes", None) or len(part) for part in data.values())

    def since() -> tuple[int, int]:
        found = len(sizes), sum(sizes)
        sizes.clear()
        return found

    watch(Client, "scatter", note)
    return since


# ------------------------------------------------------------------------------------------ once


def _wrapped(data: Any) -> dict[str, Any]:
    class Holder:
        def __init__(self) -> None:
            self.inside = {"deep": [data]}

    return {
        "itself": (total, data),
        "in a tuple": (lambda x: total(x[1]), (0, data)),
        "in a list": (lambda x: total(x[0]), [data]),
        "in a dict": (lambda x: total(x["a"]), {"a": data}),
        "in an object": (lambda x: total(x.inside["deep"][0]), Holder()),
        "in a partial": (lambda x: x(), functools.partial(total, data)),
        "in a closure": (lambda x: x(), lambda: total(data)),
        "in an estimator": (lambda x: total(x.theta_), _fitted(data)),
        "in a sparse matrix": (lambda x: float(x.sum()), scipy.sparse.csr_array(data[None])),
        "in a frame": (lambda x: float(x["a"].sum()), pd.DataFrame({"a": data})),
        "in a series": (lambda x: float(x.sum()), pd.Series(data)),
    }


def _fitted(data: Any) -> Any:
    estimator = GaussianNB()
    estimator.theta_ = data
    return estimator


@pytest.mark.cases(2)
@pytest.mark.invariant("The joblib backend sends data once, never stale, and frees them with their owner")
@pytest.mark.parametrize("where", spread(_wrapped(np.zeros(1)), 6))
def test_an_array_travels_once_wherever_it_is(where, two, sent, data):
    function, thing = _wrapped(data)[where]
    expected = function(thing)
    kept = set()
    for again in range(3):
        with parallel_config(backend="manyfit"):
            found = Parallel(batch_size=1)(delayed(function)(thing) for _ in range(12))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        parts, nbytes = sent()
        if again == 0:
            assert data.nbytes <= nbytes < 2.1 * data.nbytes
            kept = {part.rpartition("-")[0] for part in get_placement(two)._sent}
        else:
            assert (parts, nbytes) == (0, 0)
    assert kept


def test_each_worker_fetches_it_once(two, data):
    """So that it is the same object in all tasks."""
    with parallel_config(backend="manyfit"):
        many = np.concatenate([data] * 5)
        found = Parallel(batch_size=1)(delayed(_where)(many) for _ in range(20))
    assert len(set(found)) == len({worker for worker, _ in found})


def _where(x: Any) -> tuple[str, int]:
    return get_worker().address, x.__array_interface__["data"][0]


def test_equal_content_is_one_part(two, sent, data):
    Parallel(backend="manyfit")(delayed(total)(data.copy()) for _ in range(10))
    assert sent() == (1, data.nbytes)


def test_the_threshold_can_be_set(two, sent, data):
    for apart_bytes, expected in ((data.nbytes + 1000, 0), (data.nbytes, 1), ("1 MB", 0), ("100 kB", 1)):
        fresh = data + len(str(apart_bytes))
        Parallel(backend="manyfit", n_jobs=2)  # no call: nothing is sent
        with parallel_config(backend="manyfit", apart_bytes=apart_bytes):
            Parallel()(delayed(total)(fresh) for _ in range(4))
        assert sent()[0] == expected


@pytest.mark.invariant("The joblib backend sends data once, never stale, and frees them with their owner")
def test_a_search_sends_its_data_once(one, sent):
    """The folds, too, which are new arrays in each search."""
    X, y = make_classification(20_000, 10, random_state=0)
    found = []
    for _ in range(3):
        with parallel_config(backend="manyfit"):
            search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=KFold(4)).fit(X, y)
        found.append((sent()[1], search.cv_results_["mean_test_score"]))
    assert found[0][0] > X.nbytes
    assert [nbytes for nbytes, _ in found[1:]] == [0, 0]
    np.testing.assert_array_equal(found[0][1], found[2][1])


def test_arrays_of_a_search_that_was_fitted_travel_apart(one, sent):
    """scikit-learn 1.9 sends the whole search with each of its tasks."""
    X, y = make_classification(2_000, 10, random_state=0)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    search.ballast_ = list(map(str, range(50_000)))
    with parallel_config(backend="manyfit"):
        search.fit(X, y)
    assert sent()[1] < X.nbytes + 2 * len(pickle.dumps(search.ballast_))


def test_texts_travel_once_a_call(two, sent):
    texts = [f"{i} of many words" for i in range(10_000)]
    for _ in range(2):
        with parallel_config(backend="manyfit"):
            found = Parallel(batch_size=1)(delayed(len)(texts) for _ in range(12))
        assert found == [10_000] * 12
        assert sent()[0] <= 1
    frame = pd.DataFrame({"text": np.asarray(texts, object), "n": np.arange(10_000)})
    for expected in (2, 0):
        with parallel_config(backend="manyfit"):
            found = Parallel(batch_size=1)(delayed(_words)(frame) for _ in range(12))
        assert found == [sum(map(len, texts))] * 12
        assert sent()[0] <= expected


def _words(frame: Any) -> int:
    return int(frame["text"].str.len().sum())


def test_a_closure_with_much_in_it(two):
    numbers = list(range(300_000))
    found = Parallel(backend="manyfit")(delayed(lambda i: numbers[i])(i) for i in range(20))
    assert found == list(range(20))


# ------------------------------------------------------------------------------------------ never stale


@pytest.mark.invariant("The joblib backend sends data once, never stale, and frees them with their owner")
@pytest.mark.parametrize("n", [LARGE, 2 * REREAD_BYTES // 8])
def test_an_array_that_was_changed_in_place_is_sent_again(n, two, sent):
    data = np.ones(n)
    with parallel_config(backend="manyfit"):
        with Parallel() as parallel:
            assert parallel(delayed(total)(data) for _ in range(4)) == [n] * 4
            data[7] = 11.0
            assert parallel(delayed(total)(data) for _ in range(4)) == [n + 10] * 4
        data[7] = 1.0
        assert Parallel()(delayed(total)(data) for _ in range(4)) == [n] * 4
        view = data[: n - 1]
        assert Parallel()(delayed(total)(view) for _ in range(4)) == [n - 1] * 4
        data[:] = 2.0
        assert Parallel()(delayed(total)(view) for _ in range(4)) == [2 * n - 2] * 4


def test_workers_of_this_process_do_not_share_the_callers_array(two):
    data = np.ones(LARGE)
    before = Parallel(backend="manyfit", return_as="generator", pre_dispatch="all", batch_size=1)(
        delayed(total)(data) for _ in range(40)
    )
    next(before)
    data[:] = 5.0
    assert list(before) == [LARGE] * 39
    frame = pd.DataFrame({"a": np.ones(2 * REREAD_BYTES // 8)})
    with parallel_config(backend="manyfit"):
        first = Parallel()(delayed(total)(frame) for _ in range(4))
        frame.loc[0, "a"] = 2.0
        second = Parallel()(delayed(total)(frame) for _ in range(4))
    assert second == [one + 1 for one in first]


def test_content_is_read_once_a_call(watch):
    reads: list[Any] = []
    watch(_batch_pickle, "array_part_key", lambda *args: reads.append(args[0].size))
    packer, data = BatchPacker(), np.ones(2 * REREAD_BYTES // 8)
    for _ in range(100):
        packer.pack([(total, (data, data[5:]), {"again": [data]})], None)
    assert len(reads) == 2
    packer.pack([(total, (data[5:].copy(),), {})], None)
    assert len(reads) == 3


def test_scores_are_those_of_this_process(one):
    X, y = make_classification(5_000, 12, random_state=0)
    with parallel_config(backend="manyfit"):
        found = cross_val_score(LogisticRegression(), X, y, cv=4)
    np.testing.assert_array_equal(found, cross_val_score(LogisticRegression(), X, y, cv=4))
