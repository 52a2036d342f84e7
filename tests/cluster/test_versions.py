"""Workers of other versions than the client's: an error, or a warning where only a patch differs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from joblib import Parallel, delayed, parallel_config
from sklearn.linear_model import Ridge

import manyfit.joblib_backend  # noqa: F401 - registers the backend
from manyfit.cluster.inspection import versions as _versions
from manyfit.cluster.inspection.versions import process_versions, version_differences
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.checkpoint._file import Checkpoint
from manyfit.model_selection.checkpoint._search_identity import Identity
from manyfit.model_selection.running.cluster import _worker_items as _on_worker
from tests.cluster._clusters import by_hand, within
from tests.cluster._processes import wait_for
from tests.cluster._searches import X, Y

HERE = {"python": "3.11.7", "manyfit": "0.5.0", "scikit-learn": "1.9.1", "numpy": "2.1.0", "scipy": "1.15.0"}


@pytest.mark.parametrize(
    ("there", "wrong", "other"),
    [
        ({}, set(), set()),
        ({"scikit-learn": "1.8.0"}, {"scikit-learn"}, set()),
        ({"scikit-learn": "1.9.0", "numpy": "2.1.3"}, set(), {"scikit-learn", "numpy"}),
        ({"numpy": "1.26.4", "scipy": "1.14.0"}, {"numpy"}, {"scipy"}),
        ({"python": "3.11.9"}, set(), set()),
        ({"python": "3.12.1", "manyfit": "0.4.0"}, {"python", "manyfit"}, set()),
        ({"manyfit": None}, set(), set()),
    ],
)
def test_what_differs(there: Any, wrong: Any, other: Any) -> None:
    found = version_differences({**HERE, **there}, HERE)
    assert tuple(map(set, found)) == (wrong, other)
    assert version_differences({}, HERE) == ({}, {})


@pytest.fixture
def client() -> Iterator[Client]:
    """A client that has met no worker yet."""
    with within(2) as client:
        yield client


def claims(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """This process says that it has these versions; Dask's workers in it say what is installed."""
    other = {**process_versions(), **{name.replace("_", "-"): version for name, version in versions.items()}}
    monkeypatch.setattr(_versions, "process_versions", lambda: other)
    monkeypatch.setattr(_versions, "versions_installed", lambda: other)


def asks(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    """Items of a search ask workers for these versions: in one process client and worker have the same."""
    executor, common = "manyfit.model_selection.running.cluster._dask_executor", _on_worker.Common
    monkeypatch.setattr(f"{executor}.Common", lambda *args: common(*args, versions=versions))


def fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(**params: Any) -> None:
        raise TypeError("config_context() got an unexpected keyword argument")

    monkeypatch.setattr(_on_worker, "config_context", raises)


def search(**params: Any) -> GridSearchCV:
    return GridSearchCV(Ridge(solver="lsqr"), {"alpha": [0.1, 1.0]}, cv=2, refit=False, **params)


@pytest.mark.invariant("Workers refuse work of another minor version")
def test_a_search_refuses_another_minor_version(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(monkeypatch, scikit_learn="0.24.1", numpy="1.19.5")
    text = r"The worker inproc://\S+ has other versions .*: scikit-learn is \S+ instead of 0.24.1"
    with pytest.raises(RuntimeError, match=text + r"; numpy is \S+ instead of 1.19.5\. Its results"):
        search().fit(X, Y)


def test_a_search_warns_of_another_patch_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn

    minor = ".".join(sklearn.__version__.split(".")[:2])
    claims(monkeypatch, scikit_learn=f"{minor}.99")
    # A worker says it once more, with what it computes.
    asks(monkeypatch, {**_on_worker.versions(), "scikit-learn": f"{minor}.99"})
    with pytest.warns(RuntimeWarning, match=f"scikit-learn is {minor}.* instead of {minor}.99") as warned:
        search().fit(X, Y)
    assert len([one for one in warned if "other versions" in str(one.message)]) == 1
    addresses = re.findall(r"inproc://[^\s,]+", str(warned[0].message))
    assert sorted(addresses) == sorted(client.nthreads())


def test_a_module_of_a_later_version_than_what_is_installed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editable installation, whose sources were updated: the workers say what is installed."""
    later = {**process_versions(), "manyfit": "9.9.9"}
    monkeypatch.setattr(_versions, "process_versions", lambda: later)
    search().fit(X, Y)


def test_another_worker_at_the_same_address(client: Client) -> None:
    """One of another version was ended, and a right one was started on its port."""
    known = _versions._known_versions(client).known
    before, after = sorted(client.nthreads())
    known[before] = {**process_versions(), "scikit-learn": "0.24.1"}
    search().fit(X, Y)
    assert known[before]["scikit-learn"] == process_versions()["scikit-learn"]
    versions = _versions.Versions(client)
    versions.require([before, after])
    versions.require([after])
    assert set(known) == {after}


def test_a_worker_that_says_its_versions_late(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its fits raise may come of them."""
    ask, asked = _versions.ask_versions, list[Any]()

    async def late(*args: Any) -> dict[str, Any]:
        asked.append(args)
        return await ask(*args) if len(asked) > 1 else {}

    monkeypatch.setattr(_versions, "ask_versions", late)
    fails_at_once(monkeypatch)
    claims(monkeypatch, scikit_learn="0.24.1")
    with pytest.raises(RuntimeError, match=r"The worker inproc://\S+ has other versions"):
        search().fit(X, Y)


def test_a_worker_that_never_says_its_versions_fits_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks(monkeypatch, {**_on_worker.versions(), "scikit-learn": "0.24.1"})
    fails_at_once(monkeypatch)
    with pytest.raises(RuntimeError, match="A worker has other versions .* instead of 0.24.1"):
        search().fit(X, Y)


def test_a_worker_that_joins_is_compared_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = _versions.Versions(client)
    versions.require(client.nthreads())
    claims(monkeypatch, manyfit="0.0.1")
    versions.require(client.nthreads())  # each once
    client.cluster.scale(3)
    client.wait_for_workers(3, timeout=60)

    def refused() -> bool:
        try:
            versions.require(client.nthreads())
        except RuntimeError as error:
            return "manyfit is" in str(error)
        return False

    wait_for(refused, "the refusal")


def test_a_call_of_parallel_warns(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    claims(monkeypatch, scikit_learn="0.24.1")
    with pytest.warns(RuntimeWarning, match="instead of 0.24.1"), parallel_config(backend="manyfit"):
        assert Parallel()(delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]


@pytest.mark.slow
def test_a_worker_process_of_another_version(tmp_path: Path) -> None:
    """What its installed packages say is asked before it is given anything."""
    info = tmp_path / "packages" / "scikit_learn-1.5.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scikit-learn\nVersion: 1.5.2\n")
    with (
        by_hand(tmp_path, default=False, PYTHONPATH=str(tmp_path / "packages")) as client,
        pytest.raises(RuntimeError, match="scikit-learn is 1.5.2 instead of"),
    ):
        search(client=client).fit(X, Y)


# What computed each score


def test_a_checkpoint_says_what_computed_each_score(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _on_worker.versions()
    major, minor, *_ = real["scikit-learn"].split(".")
    theirs = {**real, "scikit-learn": f"{major}.{minor}.99"}
    # In one process: what a worker says is not what the client says.
    monkeypatch.setattr(_on_worker, "versions", lambda: theirs)
    path = tmp_path / "file"
    asks(monkeypatch, real)
    said = r"A worker has other versions.*scikit-learn is \d+\.\d+\.99 instead of"
    with pytest.warns(RuntimeWarning, match=said):
        search(checkpoint=path).fit(X, Y)
    with pytest.warns(RuntimeWarning, match="scores that workers of other versions .*They are used"):
        again = search(checkpoint=path, client=False).fit(X, Y)
    assert again.report_.fits_restored == 4


def test_scores_of_another_minor_version_are_computed_again(tmp_path: Path) -> None:
    identity = Identity({"X": "aa"}, {"X": "an array"})
    result = {"fit_error": None, "test_scores": 0.5, "fit_time": 0.1, "score_time": 0.1}
    old = {"scikit-learn": "0.24.1", "NumPy": process_versions()["numpy"]}
    with Checkpoint(tmp_path / "file", identity) as file:
        file.add({(0, 0): result}, individual=True, versions=old)
        file.add({(0, 1): result}, individual=True)
    with (
        pytest.warns(RuntimeWarning, match=r"scikit-learn is 0.24.1 instead of .* They are computed again"),
        Checkpoint(tmp_path / "file", identity) as file,
    ):
        assert set(file.stored) == {(0, 1)}
