"""The file of a checkpoint: what it keeps, what it refuses, and that it is never harmed."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from manyfit.model_selection.checkpoint import _database
from manyfit.model_selection.checkpoint import _file as _checkpoint
from manyfit.model_selection.checkpoint._file import Checkpoint
from manyfit.model_selection.checkpoint._result_json import NotStored, decoded, encoded
from manyfit.model_selection.checkpoint._search_identity import Identity

OURS = Identity({"X": "aa", "settings": "bb"}, {"X": "an array", "settings": "2 settings"})


def result(score, **more):
    return {"fit_error": None, "test_scores": score, "fit_time": 0.1 + 0.2, "score_time": 1e-9, **more}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


@pytest.fixture
def filled(path):
    with Checkpoint(path, OURS) as file:
        file.add({(c, i): result(c + i / 7) for c in range(200) for i in range(5)}, individual=True)
    return path


SCORES = [
    0.1 + 0.2, -0.0, 5e-324, float("nan"), float("-inf"), 7, 2**80, True, 1 + 2j, np.float64(0.1),
    np.float32(0.1), np.int8(-3), np.bool_(True), np.complex128(1j), np.float64("nan"),
    {"r2": 0.5, "own": np.float32(2)}, {},
]  # fmt: skip


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_a_score_comes_back_as_it_was(score, path):
    given = result(score, train_scores=score, fit_error="Traceback: caf\xe9 \udcff \0\n")
    with Checkpoint(path, OURS) as file:
        assert file.stored == {}
        file.add({(3, 1): given}, individual=True)
    with Checkpoint(path, OURS) as file:
        ((pair, (back, individual, versions, doubted)),) = file.stored.items()
    assert pair == (3, 1) and individual is True and versions is None and doubted is False
    assert list(back) == list(given) and repr(back) == repr(given)
    types = [type(one) for one in (score.values() if isinstance(score, dict) else [score])]
    back = back["test_scores"]
    assert [type(one) for one in (back.values() if isinstance(back, dict) else [back])] == types


def test_a_nan_keeps_its_bits():
    strange = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff", np.float64)[0]
    assert decoded(encoded(result(strange)))["test_scores"].tobytes() == strange.tobytes()


@pytest.mark.parametrize("score", [object(), np.array([1.0]), {1: 2.0}, b"x"], ids=lambda s: type(s).__name__)
def test_what_is_no_number_is_left_out(score, path):
    with pytest.raises(NotStored):
        encoded(result(score))
    with Checkpoint(path, OURS) as file:
        file.add({(0, 0): result(score), (0, 1): result(1.0)}, individual=True)
    with Checkpoint(path, OURS) as file:
        assert list(file.stored) == [(0, 1)]


def test_a_later_result_takes_the_place_of_an_earlier_one(path):
    for score, individual in ((1.0, False), (2.0, True)):
        with Checkpoint(path, OURS) as file:
            file.add({(0, 0): result(score)}, individual=individual)
    with Checkpoint(path, OURS) as file:
        assert file.stored == {(0, 0): (result(2.0), True, None, False)}


def untouched(path, match, error=ValueError, identity=OURS):
    before, stat = (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else (None, None)
    with pytest.raises(error, match=match):
        Checkpoint(path, identity)
    if before is not None:
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stat)
        assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.invariant("A damaged checkpoint is refused and left as it is")
def test_no_cut_of_any_length_is_read(filled):
    whole = filled.read_bytes()
    for length in sorted(random.Random(0).sample(range(1, len(whole)), 60)):
        filled.write_bytes(whole[:length])
        untouched(filled, "is not a checkpoint, or is damaged .*It was not changed. Give another path")
    filled.write_bytes(whole)
    with Checkpoint(filled, OURS) as file:
        assert len(file.stored) == 1000


@pytest.mark.invariant("A damaged checkpoint is refused and left as it is")
def test_no_changed_byte_changes_a_number(filled):
    """Either it is found, or it is in a part of the file that nothing is read from."""
    whole, found = filled.read_bytes(), 0
    with Checkpoint(filled, OURS) as file:
        right = file.stored
    for at in random.Random(1).sample(range(len(whole)), 150):
        filled.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            with Checkpoint(filled, OURS) as file:
                assert file.stored == right
        except (ValueError, OSError):
            found += 1
    assert found > 100


@pytest.mark.parametrize(
    "content", [b"hello", b"\0" * 5000, os.urandom(9000), b"SQLite format 3\0" + b"\1" * 500]
)
def test_a_file_of_something_else(content, path):
    path.write_bytes(content)
    untouched(path, "is not a checkpoint, or is damaged|is a database of another program")


def execute(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def test_a_database_of_something_else(path):
    execute(path, "CREATE TABLE results (a)")
    untouched(path, "is a database of another program. It was not changed")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "PRAGMA user_version = 99",
            "has layout 99 of another version of manyfit; this version writes layout",
        ),
        ("DROP TABLE results", "is damaged .no such table: results"),
    ],
)
def test_a_database_that_was_changed(statement, said, filled):
    execute(filled, statement)
    untouched(filled, said)


def test_another_identity(filled):
    for parts, said in (
        ({"X": "cc", "settings": "bb"}, "\n- X: an array in the file, a list here\nGive"),
        ({"X": "aa"}, "\n- settings: 2 settings in the file, missing here\n"),
        ({"X": "aa", "settings": "bb", "y": "dd"}, "\n- y: missing in the file, 3 rows here\n"),
    ):
        texts = {"X": "a list", "settings": "2 settings", "y": "3 rows"}
        other = Identity(parts, {name: texts[name] for name in parts})
        untouched(filled, said, identity=other)


def test_places_that_hold_no_file(tmp_path):
    untouched(tmp_path / "no" / "file", "in a folder that does not exist. Make the folder", FileNotFoundError)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="is a folder. Give the path of a file in it"):
        Checkpoint(tmp_path / "folder", OURS)
    with pytest.raises(ValueError, match="names no file"):
        Checkpoint("", OURS)


@pytest.mark.parametrize("name", ["a b?c#d%20e&mode=ro", ":memory:", "caf\xe9", "file:x"])
def test_awkward_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kept in (0, 1):
        with Checkpoint(name, OURS) as file:
            assert len(file.stored) == kept
            file.add({(0, 0): result(1.0)}, individual=True)
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_an_empty_file_is_begun(path):
    path.touch()
    with Checkpoint(path, OURS) as file:
        assert file.stored == {}
    assert path.stat().st_size > 0


def test_many_threads_begin_and_write_at_once(path):
    barrier = threading.Barrier(8)

    def work(k):
        barrier.wait()
        with Checkpoint(path, OURS) as file:
            for c in range(15):
                file.add({(c, i): result(c / 3) for i in range(k, k + 2)}, individual=True)
                file.write()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    with Checkpoint(path, OURS) as file:
        assert {pair: one.result["test_scores"] for pair, one in file.stored.items()} == {
            (c, i): c / 3 for c in range(15) for i in range(9)
        }


def test_writing_takes_its_share_of_the_time(path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_checkpoint.time, "perf_counter", lambda: now[0])
    writes = []
    with Checkpoint(path, OURS, workers=2) as file:
        write = file.write

        def counted():
            writes.append(now[0])
            now[0] += 0.01  # within which a clock of ours stands still
            write()
            file._cost = 0.01

        monkeypatch.setattr(file, "write", counted)
        file._cost = 0.01
        for j in range(5000):
            now[0] += 0.001
            file.add({(j, 0): result(1.0) | {"fit_time": 0.0009, "score_time": 0.0001}}, individual=True)
        assert 9 <= len(writes) <= 11  # five seconds of fits
        file._cost = 60.0  # a disk that is very slow
        for j in range(5000, 7500):
            now[0] += 0.001
            file.add({(j, 0): result(1.0) | {"fit_time": 0.0009, "score_time": 0.0001}}, individual=True)
            file._cost = 60.0
        assert 11 <= len(writes) <= 13  # each second
        file._cost = 0.01
        # A long fit is written as it comes, however short ago the last writing was.
        file.add({(9999, 0): result(1.0) | {"fit_time": 60.0, "score_time": 0.0}}, individual=True)
        assert writes[-1] == pytest.approx(now[0] - 0.01)


def test_what_cannot_be_written_does_not_end_the_search(path, monkeypatch):
    with Checkpoint(path, OURS) as file:
        real = _database.transaction

        def full(connection):
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(_database, "transaction", full)
        said = "cannot be written .database or disk is full.. The search continues"
        file._cost = 1e9  # not time to write yet
        file.add({(0, 0): result(1.0)}, individual=True)
        with pytest.warns(RuntimeWarning, match=said):
            file.write()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            file.write()  # said once
        monkeypatch.setattr(_database, "transaction", real)
        file.add({(0, 1): result(2.0)}, individual=True)
    with Checkpoint(path, OURS) as file:
        assert list(file.stored) == [(0, 0), (0, 1)]


def test_a_file_that_another_process_holds(path, filled, monkeypatch):
    monkeypatch.setattr(_checkpoint, "PATIENCE_S", 0.05)
    holder = sqlite3.connect(filled, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OSError, match="cannot be opened or written: database is locked"):
        Checkpoint(filled, OURS)
    holder.execute("ROLLBACK")
    holder.close()
    with Checkpoint(filled, OURS) as file:
        assert len(file.stored) == 1000


def kinds(path):
    with Checkpoint(path, OURS) as file:
        return {
            pair: ("individual" if one.individual else "doubted" if one.doubted else "shared")
            for pair, one in file.stored.items()
        }


def test_results_that_are_to_be_replaced_are_marked_until_they_are(path):
    pairs = [(0, 0), (0, 1), (1, 0)]
    with Checkpoint(path, OURS) as file:
        file.add({pair: result(0.1) for pair in pairs}, individual=False)
        file.add({(1, 1): result(0.2)}, individual=True)
    again = file.reopened([*pairs, (1, 1), (7, 7)])
    assert kinds(path) == {**dict.fromkeys(pairs, "doubted"), (1, 1): "individual"}
    with again:
        again.add({(0, 0): result(0.3)}, individual=True)
    assert kinds(path) == {(0, 0): "individual", (0, 1): "doubted", (1, 0): "doubted", (1, 1): "individual"}
    with Checkpoint(path, OURS) as file:
        assert file.doubted == {(0, 1), (1, 0)}
        assert file.stored[0, 0].result["test_scores"] == 0.3


def test_shared_work_replaces_no_fit_that_scikit_learn_made_after_all(path):
    """Two processes run one search, and one is behind."""
    with Checkpoint(path, OURS) as ahead, Checkpoint(path, OURS) as behind:
        ahead.add({(0, 0): result(0.1)}, individual=True)
        ahead.write()
        behind.add({(0, 0): result(0.2), (0, 1): result(0.2)}, individual=False)
    with Checkpoint(path, OURS) as file:
        assert [one.result["test_scores"] for one in file.stored.values()] == [0.1, 0.2]
    with Checkpoint(path, OURS) as other:  # of other versions: it was computed again
        other.add({(0, 0): result(0.4)}, individual=False, versions={"numpy": np.__version__})
    with pytest.warns(RuntimeWarning, match="workers of other versions"):
        assert kinds(path)[0, 0] == "shared"


def test_a_file_that_cannot_be_opened_again_is_said_and_done_without(path):
    with Checkpoint(path, OURS) as file:
        file.add({(0, 0): result(0.1)}, individual=False)
    path.write_bytes(b"something else" * 100)
    with pytest.warns(RuntimeWarning, match="cannot be written .*The search continues without it"):
        assert file.reopened([(0, 0)]) is None
    assert path.read_bytes() == b"something else" * 100
