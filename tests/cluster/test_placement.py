"""Data on a cluster: sent once, never stale, gone when not needed."""

from __future__ import annotations

import asyncio
import gc
import pickle
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.cluster.pool import placement
from manyfit.cluster.pool.placement import get_placement
from manyfit.cluster.worker._store import Store
from manyfit.cluster.worker.content_pickle import array_key, is_pickle, pack, place_array, unpack
from manyfit.model_selection import GridSearchCV, cross_validate
from manyfit.model_selection.results._result_sink import ResultSink
from tests.cluster._awkward import Awkward, fits
from tests.cluster._clusters import at_once, within
from tests.cluster._placement import X, Y, scores, search
from tests.cluster._processes import wait_for
from tests.cluster._searches import stored_keys

pytestmark = pytest.mark.slow


# ------------------------------------------------------------------------------------------ content


@pytest.mark.invariant("Data are sent to a worker once, are never stale, and are freed with their owner")
def test_workers_of_this_process_do_not_share_the_users_array(three):
    data = X.copy()
    before = scores(search().fit(data, Y))
    data[:] = -(data[::-1] ** 2)
    changed = scores(search().fit(data, Y))
    np.testing.assert_array_equal(scores(search().fit(X, Y)), before)
    local = search(client=False)
    np.testing.assert_array_equal(scores(local.fit(X, Y)), before)
    np.testing.assert_array_equal(scores(local.fit(data, Y)), changed)
    assert not np.array_equal(before, changed)


@pytest.mark.invariant("Data are sent to a worker once, are never stale, and are freed with their owner")
def test_data_changed_again_and_again_leave_nothing(three):
    data = X.copy()
    for i in range(5):
        data[0] = i
        GridSearchCV(Awkward(), {"value": [0]}, cv=ShuffleSplit(2), refit=False).fit(data, Y)
    wanted = {array_key(data), array_key(Y)}
    wait_for(lambda: len(get_placement(three)._sent) <= 4)  # with the indices of the last folds
    wait_for(lambda: all(len(keys) <= 4 for keys in stored_keys(three).values()))
    assert wanted <= set(get_placement(three)._sent)


def test_data_go_although_their_labels_stay(three):
    data = X.copy()
    search().fit(data, Y)
    key = array_key(data)
    assert key in get_placement(three)._sent
    del data
    gc.collect()
    wait_for(lambda: key not in get_placement(three)._sent)
    assert array_key(Y) in get_placement(three)._sent


def test_texts_and_frames_are_sent_once(three, watch):
    texts = [f"{i} of many words" for i in range(20_000)]
    frame = pd.DataFrame({"text": texts, "number": np.arange(20_000.0)})
    sent: list[Any] = []

    def note(client: Client, data: Any, *args: Any, **kwargs: Any) -> None:
        sent.append(sum(len(one[0]) if isinstance(one, tuple) else len(bytes(one)) for one in data.values()))

    watch(Client, "scatter", note)
    found, labels = [], np.arange(20_000) % 2
    for client in (three, three, False):
        longest = GridSearchCV(_Longest(), {"n": [5, 6]}, cv=KFold(2), refit=False, client=client)
        found.append(scores(longest.fit(frame, labels)))
    assert sent[0] > 300_000
    assert sent[1] < 10_000
    np.testing.assert_array_equal(found[1], found[2])


def test_an_owner_that_is_a_list_is_a_part() -> None:
    """A pickler asks no reducer about lists."""
    texts, numbers = [f"{i} of many words" for i in range(5_000)], np.arange(10_000.0)
    package = pack({"X": texts, "again": [texts, numbers]}, owners=[texts, None])
    ((owner, keys),) = package.owned
    assert owner is texts
    assert keys == package.parts.keys() - {package.key, array_key(numbers)}
    assert len(package.parts[package.key]) < 1_000
    found: dict[str, Any] = {}
    for key, content in package.parts.items():  # each after the parts that it refers to
        found[key] = unpack(content, found.__getitem__) if is_pickle(key) else place_array(key, content)
    whole = found[package.key]
    assert whole["X"] == texts
    assert whole["X"] is whole["again"][0]
    np.testing.assert_array_equal(whole["again"][1], numbers)
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(package.parts[package.key])


class _Longest(Awkward):
    def __init__(self, n: int = 1) -> None:
        self.n = n

    def fit(self, X: Any, y: Any) -> _Longest:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return ((X["text"].str.len() + X["number"]) % self.n > 2).astype(int)


def test_a_search_that_ended_holds_no_client():
    with within(1) as first:
        for _ in range(2):
            with Client(first.cluster):
                search().fit(X, Y)
        first.close()
        with Client(first.cluster) as client:
            assert get_placement(client)
            assert [one.status for one in placement._placements] == ["running"]


@pytest.mark.invariant("Data are sent to a worker once, are never stale, and are freed with their owner")
@pytest.mark.parametrize(
    "threads",
    [
        "",
        pytest.param("import threading; threading.Thread(target=print).start()", marks=pytest.mark.thorough),
    ],
)
def test_a_script_ends(threads, tmp_path):
    """Its arrays go while the interpreter does."""
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import numpy as np
from distributed import Client, LocalCluster
from sklearn.tree import DecisionTreeClassifier
from manyfit.model_selection import GridSearchCV, cross_validate
{threads}
X, y = np.random.default_rng(0).normal(size=(6000, 5)), np.arange(6000) % 2
cluster = LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=":0")
client = Client(cluster)
search = GridSearchCV(DecisionTreeClassifier(), {{"max_depth": [1, 2]}}, cv=2).fit(X, y)
print("done")
"""
    )
    ended = subprocess.run(
        [sys.executable, str(script)], timeout=60, capture_output=True, text=True, cwd=tmp_path
    )
    assert (ended.returncode, ended.stdout.strip().splitlines()[-1]) == (0, "done")


# ------------------------------------------------------------------------------------------ the store


def test_a_store_makes_room_for_what_was_used_last():
    store = Store(100)
    for name in "abc":
        store.add(name, name, 30)
    store.find(["a"])
    store.add("d", "d", 30, holds=["c"])
    assert store.keys() == {"a", "c", "d"}
    store.add("e", "e", 300)
    assert store.keys() == {"e"}
    assert store.nbytes == 300
    store.add("f", "f", 0, holds=["e"])
    store.drop(["e"])
    assert not store.keys()


def test_a_store_drops_what_nobody_uses():
    store = Store(100)
    store.add("a", "a", 1)
    time.sleep(0.02)
    store.add("b", "b", 1)
    store.drop_unused(0.01)
    assert store.keys() == {"b"}
    time.sleep(0.02)
    with store.using("b"):
        store.drop_unused(0.01)
        assert not store.drop_oldest()
    assert store.drop_oldest()
    assert not store.keys()


# ------------------------------------------------------------------------------------------ tasks


def test_a_large_result_arrives_and_is_made_once(three, tmp_path, monkeypatch):
    """However long it takes: longer here than it is looked who is there."""

    class Large(Awkward):
        def fit(self, X: Any, y: Any) -> Large:
            self.ballast_ = np.ones(2_000_000)
            return super().fit(X, y)

    gather = Client.gather

    async def slow(client: Client, *args: Any, **kwargs: Any) -> Any:
        result = await gather(client, *args, **kwargs)
        await asyncio.sleep(1.5)
        return result

    monkeypatch.setattr(Client, "gather", slow)
    found = cross_validate(Large(folder=str(tmp_path)), X, Y, cv=2, return_estimator=True)
    assert [one.ballast_.sum() for one in found["estimator"]] == [2_000_000] * 2
    assert len(fits(tmp_path)) == 2


@pytest.mark.parametrize("stopped", [False, True])
def test_shared_steps_are_handed_back(stopped, three, monkeypatch):
    """So that others can take them; and what was fitted before an interrupt is kept."""
    monkeypatch.setattr("manyfit.model_selection.strategies._individual_fits.HAND_BACK_S", 0.2)
    monkeypatch.setattr("manyfit.model_selection.strategies._individual_fits.HAND_BACK", 2.0)
    steps = make_pipeline(StandardScaler(), Awkward(seconds=0.05))
    grid = {"awkward__value": list(range(10)), "standardscaler__with_mean": [False, True]}
    whole = GridSearchCV(steps, grid, cv=KFold(2), refit=False)
    add = ResultSink.add
    arrived: list[int] = []

    def counted(self: ResultSink, results: Any, **kwargs: Any) -> None:
        add(self, results, **kwargs)
        arrived.append(len(results))
        if stopped and len(arrived) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(ResultSink, "add", counted)
    if stopped:
        with pytest.raises(KeyboardInterrupt):
            whole.fit(X, Y)
        assert len(whole.partial_results_) == sum(arrived) > 0
        wait_for(lambda: not any(three.processing().values()), 3.0)
        return
    whole.fit(X, Y)
    assert len(arrived) > 4
    assert sum(arrived) == 40
    local = GridSearchCV(steps, grid, cv=KFold(2), refit=False, client=False).fit(X, Y)
    np.testing.assert_array_equal(scores(whole), scores(local))


def test_each_line_is_printed_once(three, capsys):
    search(2).set_params(verbose=2).fit(X, Y)
    lines = [line for line in capsys.readouterr().out.splitlines() if "END" in line]
    assert len(lines) == 4


def test_equal_searches_at_once_are_fitted_once(three, tmp_path):
    searches = [search(4, seconds=0.2, folder=str(tmp_path)) for _ in range(2)]
    at_once(*(partial(one.fit, X, Y) for one in searches))
    np.testing.assert_array_equal(*map(scores, searches))
    assert 8 <= len(fits(tmp_path)) < 16
