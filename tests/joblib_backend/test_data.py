"""Data of tasks: once to each worker, never stale, let go of, and as they were."""

from __future__ import annotations

import functools
import gc
import itertools
import pickle
import weakref
from collections.abc import Iterator
from typing import Any

import array_api_strict
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

from manyfit.cluster.pool import _retention as _kept
from manyfit.cluster.pool._retention import RetainedParts
from manyfit.cluster.pool.placement import get_placement
from manyfit.joblib_backend import _batch_pickle
from manyfit.joblib_backend._batch_pickle import REREAD_BYTES, BatchPacker
from tests._covering import spread
from tests.cluster._clusters import within
from tests.cluster._processes import wait_for

pytestmark = pytest.mark.slow

LARGE = 40_000  # numbers of an array that travels apart


def total(x: Any) -> float:
    return float(np.asarray(x).sum())


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


_seeds = itertools.count()


@pytest.fixture
def data() -> Any:
    """Of a content that no other test has: that may still be on the cluster, and is then not sent."""
    return np.random.default_rng(next(_seeds)).normal(size=LARGE)


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


def test_objects_that_change_between_tasks_are_sent_as_they_are(two):
    """A list is looked at for each batch, unlike arrays of 1 MB."""
    grows: list[str] = ["a" * 40_000]

    def tasks() -> Iterator[Any]:
        for i in range(12):
            grows.append(str(i))
            yield delayed(len)(list(grows))

    assert Parallel(backend="manyfit", batch_size=1)(tasks()) == list(range(2, 14))


def test_tasks_get_objects_of_their_own(two):
    """What is sent once is still not shared between tasks."""
    much = [0.5] * 20_000

    def grow(x: list[float]) -> int:
        x.append(1.0)
        return len(x)

    assert Parallel(backend="manyfit", batch_size=1)(delayed(grow)(much) for _ in range(10)) == [20_001] * 10


# ------------------------------------------------------------------------------------------ writing


def _write(x: Any) -> float:
    x[0] = 100.0
    return float(x.sum())


def _unlock(x: Any) -> None:
    x.setflags(write=True)


def test_large_arrays_of_tasks_cannot_be_made_writable(two):
    """Nor can they under loky: what one task wrote would be there for all later ones."""
    large = np.asfortranarray(np.ones((2, REREAD_BYTES // 8)))
    with parallel_config(backend="manyfit"), pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        Parallel()(delayed(_unlock)(x) for x in (large, large))


def test_arrays_of_tasks_are_writable_as_under_loky(two):
    """Up to `max_nbytes` they are the task's own; larger ones are mapped there, read-only."""
    small, large = np.ones(LARGE), np.ones(2 * REREAD_BYTES // 8)
    with parallel_config(backend="manyfit"):
        assert Parallel()(delayed(_write)(small) for _ in range(6)) == [LARGE + 99.0] * 6
        with pytest.raises(ValueError, match="read-only"):
            Parallel()(delayed(_write)(large) for _ in range(6))
        assert Parallel(max_nbytes=None)(delayed(_write)(large) for _ in range(6)) == [len(large) + 99.0] * 6
        assert Parallel(mmap_mode="c")(delayed(_write)(large) for _ in range(6)) == [len(large) + 99.0] * 6
        with pytest.raises(ValueError, match="read-only"):
            Parallel(max_nbytes="100K")(delayed(_write)(small) for _ in range(6))
    assert (small == 1.0).all()
    assert (large == 1.0).all()


# ------------------------------------------------------------------------------------------ as they were


def _arrays(tmp_path: Any) -> dict[str, Any]:
    numbers = np.random.default_rng(0).normal(size=(300, 200))
    on_disk = np.memmap(tmp_path / "numbers", "f8", "w+", shape=(300, 200))
    on_disk[:] = numbers
    read_only = numbers.copy()
    read_only.flags.writeable = False
    return {
        "0-d": np.array(3.0),
        "empty": np.empty((0, 5)),
        "Fortran": np.asfortranarray(numbers),
        "every other": numbers[::2, ::-3],
        "transposed": numbers.T,
        "broadcast": np.broadcast_to(np.arange(300.0)[:, None], (300, 200)),
        "objects": np.array([{"a": 1}, None, "text"] * 5_000, dtype=object),
        "texts": np.array(["some text"] * 10_000),
        "records": np.zeros(10_000, dtype=[("a", "f8"), ("b", "U3")]),
        "big endian": numbers.astype(">f8"),
        "half": numbers.astype("f2"),
        "bool": numbers > 0,
        "complex": numbers + 1j,
        "dates": np.arange(20_000).astype("M8[s]"),
        "mapped": np.memmap(tmp_path / "numbers", "f8", "r", shape=(300, 200)),
        "a part of what is mapped": np.memmap(tmp_path / "numbers", "f8", "r", shape=(300, 200))[10:, :150],
        "masked": np.ma.masked_less(numbers, 0),
        "read-only": read_only,
        "large every other": np.random.default_rng(0).normal(size=(2_000, 200))[:, ::2],
    }


def _told(x: Any) -> Any:
    content = np.array(x, order="K", subok=True)
    return content, type(x) is np.memmap, np.ma.isMA(x), x.dtype, x.shape, x.flags.fnc


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arrays_arrive_as_they_were(two, tmp_path):
    for kind, array in _arrays(tmp_path).items():
        masked = np.ma.isMA(array)
        expected = (False, masked, array.dtype, array.shape, array.flags.fnc)
        for content, *found in Parallel(backend="manyfit")(delayed(_told)(array) for _ in range(4)):
            assert tuple(found) == expected, kind
            np.testing.assert_array_equal(content, array if masked else np.asarray(array), err_msg=kind)


def test_one_array_twice_in_a_task_is_one_object(two, data):
    same = delayed(lambda a, b: a is b["b"])
    assert Parallel(backend="manyfit")(same(data, {"b": data}) for _ in range(4)) == [True] * 4


def test_arrays_of_a_device_arrive_on_it(two):
    device = array_api_strict.Device("device1")
    array = array_api_strict.asarray(np.arange(float(LARGE)), device=device)

    def told(x: Any) -> tuple[str, float]:
        import array_api_strict

        return str(x.device), float(array_api_strict.sum(x))

    found = Parallel(backend="manyfit")(delayed(told)(array) for _ in range(4))
    assert found == [(str(device), LARGE * (LARGE - 1) / 2)] * 4


def test_huge_results_come_back_writable(two):
    for result in Parallel(backend="manyfit", batch_size=1)(
        delayed(np.full)(3_000_000, float(i)) for i in range(6)
    ):
        result += 1.0
        assert result[0] == result[-1]


# ------------------------------------------------------------------------------------------ let go of


@pytest.mark.invariant("The joblib backend sends data once, never stale, and frees them with their owner")
def test_nothing_stays_when_the_caller_has_let_go(two):
    placement = get_placement(two)
    gc.collect()
    wait_for(lambda: not placement._sent or gc.collect() or not placement._sent)
    data = np.ones(LARGE)
    Parallel(backend="manyfit")(delayed(total)(data) for _ in range(4))
    Parallel(backend="manyfit")(delayed(len)(["text"] * 50_000) for _ in range(4))
    wait_for(lambda: len(placement._sent) == 1)
    del data
    gc.collect()
    wait_for(lambda: not placement._sent and not placement.retained._entries and not placement._in_use)
    wait_for(lambda: not two.has_what() or not any(two.has_what().values()))


def most_parts(client: Client, arrays: Any) -> int:
    """How many parts at most are on the cluster while a call goes over arrays of one number each."""
    placement, most = get_placement(client), 0
    results = Parallel(backend="manyfit", batch_size=1, return_as="generator")(
        delayed(total)(array) for array in arrays
    )
    for i, result in enumerate(results):
        assert result == i * LARGE
        most = max(most, len(placement._sent))
    return most


@pytest.mark.invariant("The joblib backend sends data once, never stale, and frees them with their owner")
def test_arrays_that_a_generator_makes_are_let_go_on_the_way(monkeypatch):
    """Neither the client nor the cluster keeps all of them."""
    monkeypatch.setattr("manyfit.joblib_backend._shared_arguments.RECENT_BYTES", 10 * 8 * LARGE)
    with within(1) as client:
        most = most_parts(client, (np.full(LARGE, float(i)) for i in range(60)))
        assert most < 40  # how soon is a matter of time


def test_a_list_of_arrays_that_is_larger_than_what_is_kept(monkeypatch):
    """Though the caller has all of them."""
    monkeypatch.setattr("manyfit.joblib_backend._shared_arguments.RECENT_BYTES", 8 * LARGE)
    monkeypatch.setattr("manyfit.joblib_backend._shared_arguments.KEPT_PART", 1e-3)
    arrays = [np.full(LARGE, float(i)) for i in range(60)]
    with within(1, memory_limit=80_000 * LARGE) as client:  # ten arrays are kept
        assert 8 <= most_parts(client, arrays) < 30  # and those that are under way
        assert get_placement(client).retained._nbytes <= 10 * 8 * LARGE


def test_arrays_that_go_with_the_interpreter_are_no_errors(monkeypatch):
    """Modules are emptied then before all arrays are gone; an error would be a warning here."""
    kept, data = RetainedParts(lambda: None), np.ones(2)
    assert kept.keep("a", 16, data)
    for name in ("sys", "contextlib"):
        monkeypatch.setattr(_kept, name, None)
    del data
    gc.collect()


def test_the_packer_holds_nothing():
    packer = BatchPacker()
    data = np.ones(2 * REREAD_BYTES // 8)
    view = data[10:]
    keys = {packer.pack([(total, (view,), {})], None).owners[0][1] for _ in range(2)}
    assert len(keys) == 1
    gone = weakref.ref(data)
    del data, view
    gc.collect()
    assert gone() is None


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
