"""An error of a task is the caller's exception in seconds, and nothing that was queued runs after it."""

from __future__ import annotations

import _thread
import multiprocessing
import pickle
import threading
import time
from typing import Any

import pytest
from joblib import Parallel, delayed

from tests.cluster._clusters import in_seconds, meanwhile
from tests.joblib_backend._calls import SECONDS, fails_at, identity

pytestmark = pytest.mark.slow


class Unwilling:
    """Cannot be pickled."""

    def __reduce__(self) -> Any:
        raise RuntimeError("123")


class Fickle(Exception):
    """Can be pickled, but not read again."""

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__(f"{first} and {second}")


def locked() -> Any:
    return threading.Lock()


@pytest.fixture(autouse=True)
def _in_seconds() -> Any:
    with in_seconds(60):
        yield


def runs(ran: Any) -> tuple[int, int]:
    """How many calls left a line in a file, and how many did half a second later."""
    before = len(ran.read_text().split())
    time.sleep(0.5)
    return before, len(ran.read_text().split())


def runs_in_all(ran: Any) -> int:
    """How many calls have left a line in a file when no more do: workers hear of a cancellation later."""
    before, after = -1, 0
    while after > before:
        before, after = runs(ran)
    return after


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
@pytest.mark.parametrize("at", [0, 30])
@pytest.mark.parametrize("return_as", ["list", "generator", "generator_unordered"])
def test_an_argument_that_cannot_be_pickled(at, return_as, two):
    """Within the first batches, and beyond them, where joblib submits in a thread of the backend."""
    tasks = (delayed(identity)(Unwilling() if i == at else i) for i in range(60))
    said = r"Could not pickle the task.*identity.*123"
    with in_seconds(SECONDS), pytest.raises(pickle.PicklingError, match=said) as raised:
        list(Parallel(backend="manyfit", return_as=return_as, batch_size=1)(tasks))
    assert isinstance(raised.value.__cause__, RuntimeError)


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
@pytest.mark.parametrize("at", [0, 30])
def test_a_result_that_cannot_be_pickled(at, two):
    with in_seconds(SECONDS), pytest.raises(pickle.PicklingError, match="result of type lock") as raised:
        Parallel(backend="manyfit", batch_size=1)(delayed(locked if i == at else int)() for i in range(60))
    assert "cannot pickle '_thread.lock' object" in str(raised.value.__cause__)


@pytest.mark.parametrize(
    ("error", "kind", "match"),
    [
        (lambda: KeyError("k"), KeyError, "k"),
        (lambda: Fickle(1, 2), RuntimeError, r"Fickle: 1 and 2 .the exception itself cannot be returned"),
        (KeyboardInterrupt, KeyboardInterrupt, None),
        (SystemExit, SystemExit, None),
    ],
)
def test_exceptions_of_tasks(error, kind, match, two):
    def fails() -> None:
        raise error()

    with pytest.raises(kind, match=match) as raised:
        Parallel(backend="manyfit")(delayed(fails)() for _ in range(4))
    assert "in fails" in str(raised.value.__cause__)  # the traceback of the task


def test_an_exception_that_holds_what_cannot_be_pickled(two):
    def fails() -> None:
        error = ValueError("of a lock")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(RuntimeError, match="ValueError: of a lock"):
        Parallel(backend="manyfit")(delayed(fails)() for _ in range(4))


def test_an_exception_without_a_text(two):
    class Mute(Exception):
        def __str__(self) -> str:
            raise OSError("no text")

    class Alone(Mute):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    with pytest.raises(Mute):
        Parallel(backend="manyfit")(delayed(_raise)(Mute) for _ in range(4))
    with pytest.raises(RuntimeError, match="Alone: its text is not available .the exception itself"):
        Parallel(backend="manyfit")(delayed(_raise)(Alone) for _ in range(4))


def _raise(kind: Any) -> None:
    raise kind()


def test_a_recursion_without_end(two):
    def deeper(chained: bool) -> Any:
        try:
            return deeper(False)
        except RecursionError as error:
            if chained:
                raise ValueError("too deep") from error
            raise

    for chained, kind in ((False, RecursionError), (True, ValueError)):
        with pytest.raises(kind) as raised:
            Parallel(backend="manyfit")(delayed(deeper)(chained) for _ in range(4))
        assert "RecursionError: maximum recursion depth exceeded" in str(raised.value.__cause__)


def test_a_result_that_cannot_be_read(two):
    class Reluctant:
        def __reduce__(self) -> Any:
            return int, ("no number",)

    with pytest.raises(ValueError, match="no number"):
        Parallel(backend="manyfit")(delayed(lambda: Reluctant())() for _ in range(4))


def test_an_error_of_the_generator_of_tasks(two):
    for at, error in ((0, ValueError), (20, ValueError), (20, SystemExit)):

        def tasks(at: int = at, error: Any = error) -> Any:
            for i in range(40):
                if i == at:
                    raise error("no more")
                yield delayed(identity)(i)

        with pytest.raises(error, match="no more"):
            Parallel(backend="manyfit", batch_size=1)(tasks())


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
@pytest.mark.parametrize("pre_dispatch", ["2 * n_jobs", "all"])
def test_after_an_error_nothing_that_was_queued_runs(pre_dispatch, two, tmp_path):
    ran = tmp_path / "ran"
    with pytest.raises(ValueError, match="no such 5"):
        Parallel(backend="manyfit", batch_size=1, pre_dispatch=pre_dispatch)(
            delayed(fails_at)(i, 5, str(ran)) for i in range(200)
        )
    before, after = runs(ran)
    assert before < 20
    assert after <= before + 2  # those that ran already


def test_a_batch_stops_where_it_is(two, tmp_path):
    """Not even the rest of a batch runs on."""
    ran = tmp_path / "ran"
    with pytest.raises(multiprocessing.TimeoutError):
        Parallel(backend="manyfit", batch_size=100, timeout=0.3, pre_dispatch="all")(
            delayed(fails_at)(i, -1, str(ran)) for i in range(200)
        )
    time.sleep(0.3)
    before, after = runs(ran)
    assert after == before < 100


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
def test_after_an_interrupt_nothing_that_was_queued_runs(two, tmp_path):
    ran = tmp_path / "ran"

    def interrupt_once_a_task_runs():
        deadline = time.monotonic() + 30
        while not ran.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        _thread.interrupt_main()

    timer = meanwhile(0.0, interrupt_once_a_task_runs)
    with pytest.raises(KeyboardInterrupt):
        Parallel(backend="manyfit", batch_size=1, pre_dispatch="all")(
            delayed(fails_at)(i, -1, str(ran)) for i in range(400)
        )
    timer.join()
    assert runs_in_all(ran) < 200


def test_a_generator_that_is_given_up_is_cancelled(two, tmp_path):
    ran = tmp_path / "ran"
    results = Parallel(backend="manyfit", batch_size=1, pre_dispatch="all", return_as="generator")(
        delayed(fails_at)(i, -1, str(ran)) for i in range(400)
    )
    next(results)
    with pytest.warns(UserWarning, match="have been cancelled"):
        results.close()
    assert runs_in_all(ran) < 200
