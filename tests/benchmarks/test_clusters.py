"""The benchmarks on clusters, at a size that takes moments, on one cluster for all of them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from benchmarks import _bytes, _large_cluster, _limit, _measure, _slots, _wire
from benchmarks import _on_workers as on
from benchmarks._benchmark import all_benchmarks
from benchmarks._contenders import sklearn
from benchmarks._measure import run
from benchmarks._report import table
from benchmarks._study import Study
from benchmarks._timed import Sleeps, Spins
from tests.cluster._clusters import forking

ON_CLUSTERS = [name for name in all_benchmarks() if name.startswith("cluster-")]
# Left out of the short tests: starting its processes takes longer than all the others.
LOKY = sklearn(on.WORKERS).name


@pytest.fixture(scope="module")
def client():
    with forking(), on.two_workers() as client:
        yield client


@pytest.fixture
def around(client, monkeypatch):
    """The one cluster, in place of those that the benchmarks start."""
    monkeypatch.setattr(on, "two_workers", lambda: nullcontext(client))
    return lambda: nullcontext(client)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("cluster-shared-affine", marks=pytest.mark.thorough),
        # What its fits import takes as long as all other tests.
        pytest.param("cluster-overhead", marks=pytest.mark.thorough),
    ],
)
def test_runs_and_compares(name, around):
    benchmark = all_benchmarks()[name]
    contenders = tuple(c for c in benchmark.contenders if c.name != LOKY)
    benchmark = replace(benchmark, contenders=contenders, around=around)
    result = run(benchmark, repeat=1, quick=True, memory=False)
    for row in result.rows:
        if row.name == on.DASK_ML and row.failure is not None:
            assert row.failure.startswith("ModuleNotFoundError: No module named 'dask_ml'")
            continue
        assert row.failure is None
        assert row.fit_sums[0] > 0
        assert row.split_difference <= 1e-12
        # Only of fits that are made here something is counted here.
        assert (row.fits is None) == (row.name not in (on.HERE, on.HERE_WITH_CHECKPOINT, result.reference))
    if name.startswith("cluster-shared"):  # nothing of which two cores would take half the time
        assert result.ideal is None
    else:
        assert result.ideal == result.row(result.reference).fit_sums[0] / 2
        assert "by its own report" in table(result)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ON_CLUSTERS)
def test_runs_as_it_is_and_leaves_nothing(name, tmp_path):
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--no-memory", "--out", str(out)]
    process = subprocess.Popen(
        command, cwd=_large_cluster.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    started: set[psutil.Process] = set()
    while process.poll() is None:
        started.update(psutil.Process(process.pid).children(recursive=True))
        time.sleep(0.2)
    assert process.communicate()[0].startswith(name.encode())
    assert process.returncode == 0
    assert started
    _, left = psutil.wait_procs(started, timeout=10)
    assert left == []
    (kept,) = json.loads(out.read_text())["results"]
    assert kept["rows"]


# ------------------------------------------------------------------------------------------ bytes


def test_what_goes_over_the_wire_is_counted(client):
    """The data is known, and the kernel counts more than we do."""
    data = np.random.default_rng(0).normal(size=200_000)
    with _wire.watched(client) as wire:
        before, kernel = wire.sent(), _loopback()
        (worker, *_) = client.nthreads()
        future = client.scatter(data, workers=[worker], hash=False, direct=False)
        sent = wire.sent() - before
        assert data.nbytes <= sent.data < data.nbytes + 2_000
        assert (
            2 * data.nbytes < sent.everyone < 2 * data.nbytes + 50_000
        )  # once to the scheduler, once from it
        assert sent.messages < 5_000
        before = wire.sent()
        client.submit(len, future, workers=[_other(client, worker)]).result()
        fetched = wire.sent() - before
        assert fetched.data == 0
        assert data.nbytes < fetched.everyone < data.nbytes + 50_000  # from one worker to the other
        assert kernel is None or _loopback() - kernel > 3 * data.nbytes
    before = _wire.written()
    client.submit(len, [1]).result()
    assert _wire.written() == before  # nobody counts here any more


def _other(client, worker):
    return next(address for address in client.nthreads() if address != worker)


def _loopback():
    counters = psutil.net_io_counters(pernic=True).get("lo")
    return counters and counters.bytes_sent


def test_bytes(around, monkeypatch):
    study = all_benchmarks()["cluster-bytes"]
    assert isinstance(study, Study)
    found = study.run(quick=True)
    ours = [row for row in found.rows if row["contender"] == on.OURS]
    joblib = [row for row in found.rows if row["contender"] == on.JOBLIB_DASK]
    assert [row["search"] for row in ours] == ["first", "second"] * 2
    for first, second in (ours[:2], ours[2:]):
        assert first["bytes"] <= first["data"] < 1.1 * first["bytes"]
        assert second["data"] < 50_000  # what is asked for, without the data
        assert second["everyone"] < 0.1 * first["everyone"]
    assert min(row["data"] for row in joblib) > joblib[0]["bytes"]
    assert [verdict.met for verdict in found.verdicts][1] is True
    monkeypatch.setattr(_bytes.psutil, "virtual_memory", lambda: SimpleNamespace(available=0))
    monkeypatch.setattr(_bytes, "_CONTENDERS", (on.manyfit(),))
    found = study.run(quick=True)
    assert "no memory" in found.notes[-1]
    assert found.verdicts[1].met is None


# ------------------------------------------------------------------------------------------ slots


class _Cluster:
    """Grows at once; as many processors as it is asked for."""

    def __init__(self, client=None) -> None:
        self.client, self.slots = client, 0

    def grow(self, slots):
        self.slots = slots

    def cpu_seconds(self):
        return dict.fromkeys(("client", "scheduler", "workers"), time.monotonic())


@pytest.mark.parametrize("lost_time", [(0.0, 0.0, 2.0, 2.0), (0.0, 2.0, 0.0, 2.0, 2.0)])
def test_the_slots_that_are_kept_busy(lost_time, monkeypatch):
    """The ladder ends at the first step that is not busy enough twice."""
    lost = iter(lost_time)

    def search(client, seconds, n_fits):
        return (
            5.0 if n_fits < 10 else 10 * seconds + next(lost)
        )  # the first search on new workers does not count

    monkeypatch.setattr(_slots, "large_cluster", lambda: nullcontext(_Cluster()))
    monkeypatch.setattr(_slots, "_QUICK", {1.0: (10, (1, 2, 8, 16))})
    monkeypatch.setattr(_slots, "_search", search)
    found = _slots.measure_slots(True, lambda where: None)
    tries = [row["slots"] for row in found.rows]
    assert tries == ([1, 2, 8, 8] if len(lost_time) == 4 else [1, 2, 2, 8, 8])
    assert found.found == {"1": 2}
    assert [row["busy"] for row in found.rows] == [10 / (10 + one) for one in lost_time]
    assert [row["fits"] for row in found.rows] == [10 * n for n in tries]
    assert "2 slots are 90% busy with fits of 1 s" in found.notes
    assert all(key in found.rows[0] for key in (column.key for column in found.columns))


@pytest.mark.thorough
def test_a_large_cluster_has_its_slots_and_leaves_nothing():
    with _large_cluster.large_cluster() as cluster:
        cluster.grow(80)
        assert sum(cluster.client.nthreads().values()) == cluster.slots == 80
        cluster.grow(16)
        assert cluster.slots == 80
        started = [
            child for child in psutil.Process().children() if "benchmarks._large_cluster" in child.cmdline()
        ]
        assert len(started) == 3  # of them the scheduler
        before = cluster.cpu_seconds()
        _slots._search(cluster.client, 0.01, 50)
        assert all(now > before[who] for who, now in cluster.cpu_seconds().items())
    _, left = psutil.wait_procs(started, timeout=5)
    assert left == []


def test_a_process_that_does_not_start_is_an_error(monkeypatch):
    monkeypatch.setattr(_large_cluster, "_MODULE", "benchmarks._no_such_module")
    with pytest.raises(RuntimeError, match="ended with 1"), _large_cluster.large_cluster():
        pass


# ------------------------------------------------------------------------------------------ how it is timed


def _contenders_that(sleep):
    taken = all_benchmarks()["cluster-overhead"]
    calls = []

    def fit(task, X, y):
        calls.append(1)
        time.sleep(sleep)
        return sklearn().fit(task, X, y)

    slow = replace(sklearn(), name="slow", kind="other", fit=fit)
    return replace(taken, contenders=(sklearn(), slow), bars=(), around=nullcontext), calls


def test_a_long_run_is_timed_as_it_warms_up(monkeypatch):
    benchmark, calls = _contenders_that(0.3)
    monkeypatch.setattr(_measure, "_LONG_SECONDS", 0.25)
    row = run(benchmark, repeat=3, quick=True, memory=False).row("slow")
    assert len(calls) == len(row.seconds) == len(row.fit_sums) == 1
    assert row.split_difference == 0.0


@pytest.mark.timeout(0)  # the timer of pytest-timeout would be left alone
def test_a_run_that_takes_too_long_is_ended():
    benchmark, calls = _contenders_that(30.0)
    benchmark = replace(benchmark, most_seconds=0.5)
    result = run(benchmark, repeat=2, quick=True, memory=False)
    assert len(calls) == 1
    assert result.rows[1].failure == "TooLong: not done in 0.5 s"
    assert result.given_up("slow") == 0.5
    assert result.row("slow") is None
    assert len(result.row("scikit-learn n_jobs=None").seconds) == 2


def test_no_limit_in_other_threads():
    found = []

    def inside():
        with _limit.time_limit(0.01):
            time.sleep(0.05)
            found.append("done")

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert found == ["done"]


@pytest.mark.parametrize(("kind", "clock"), [(Spins, time.thread_time), (Sleeps, time.monotonic)])
def test_estimators_take_their_time(kind, clock):
    X, y = np.zeros((4, 1)), np.array([0.0, 1.0, 2.0, 3.0])
    start = clock()
    fitted = kind(0.05, value=1.0).fit(X, y)
    assert 0.05 <= clock() - start < 0.2
    assert fitted.score(X[:2], y[:2]) == -0.5 - 1.0
