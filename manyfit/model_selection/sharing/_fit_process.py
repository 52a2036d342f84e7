"""The process that makes fits which may be ended: it reads requests from its input, and answers them.

A request and an answer are pickles, each after its length in 8 bytes. The process says that it has read a
request before it answers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import pickle
import signal
import struct
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import cloudpickle
import numpy as np
import sklearn

from manyfit._config import config_context
from manyfit.model_selection.job._job import Options, Result
from manyfit.model_selection.sharing._fold_store import FoldStore

_LENGTH = struct.Struct("<Q")
# The process ends itself so many seconds after it should have been ended: the asking one is dead.
_GRACE_S = 10.0


@dataclass(frozen=True)
class FitData:
    """What the fits of a search have in common; sent once to each process."""

    X: Any
    y: Any
    options: Options

    def is_same(self, other: FitData | None) -> bool:
        return other is not None and all(
            getattr(self, name) is getattr(other, name) for name in ("X", "y", "options")
        )


@dataclass(frozen=True)
class FitRequest:
    """A setting to fit and score on a split, and what the asking process has set."""

    function: Callable[..., Result]
    estimator: Any
    params: Any
    i: int
    split: tuple[Any, Any]
    progress: Any
    config: dict[str, Any]
    filters: list[Any]
    random_state: Any
    seconds: float = 0.0


@dataclass(frozen=True)
class FitAnswer:
    """The result of a fit or the error that it raised, and what else it left."""

    result: Result | None
    error: BaseException | None
    printed: str
    warned: list[tuple[Any, Any, str, int]]
    random_state: Any


def send(stream: BinaryIO, message: Any) -> None:
    content = cloudpickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read a message; EOFError if the other end is closed."""
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    return pickle.loads(_read(stream, length))


def _read(stream: BinaryIO, length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError("the other process has ended")
    return content


def main() -> None:
    """Answer requests until the asking process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asking process decides
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what compiled code prints is no answer
    data: FitData | None = None
    with contextlib.suppress(EOFError), open(os.devnull, "w") as nowhere:
        while True:
            message = receive(requests)
            send(answers, "read")
            if isinstance(message, FitData):
                data = message
                continue
            assert data is not None
            # This needs no lock of the interpreter, which compiled code may hold.
            faulthandler.dump_traceback_later(message.seconds + _GRACE_S, exit=True, file=nowhere)
            answer = _answer(message, data)
            faulthandler.cancel_dump_traceback_later()
            _send_answer(answers, answer)


def _send_answer(stream: BinaryIO, answer: FitAnswer) -> None:
    try:
        send(stream, answer)
    except Exception as error:  # what the fit has raised or returned cannot be pickled
        failed = RuntimeError(f"The result of a fit cannot be sent to the search: {error!r}.")
        send(stream, FitAnswer(None, failed, answer.printed, [], answer.random_state))


def _answer(request: FitRequest, data: FitData) -> FitAnswer:
    folds = FoldStore(data.X, data.y, {request.i: request.split}, data.options, False)
    result: Result | None = None
    failed: BaseException | None = None
    printed = io.StringIO()
    np.random.set_state(request.random_state)
    sklearn.set_config(**request.config)
    with (
        config_context(host_fallback=data.options.host_fallback),
        contextlib.redirect_stdout(printed),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.filters[:] = request.filters  # type: ignore[index]
        try:
            result = request.function(request.estimator, request.params, request.i, folds, request.progress)
        except Exception as error:
            error.add_note("In the process of the fit:\n" + "".join(traceback.format_exception(error)))
            failed = _portable(error.with_traceback(None), RuntimeError)
    warned = []
    for one in caught:
        message = _portable(one.message, UserWarning)  # type: ignore[arg-type]
        warned.append((message, type(message), one.filename, one.lineno))
    return FitAnswer(result, failed, printed.getvalue(), warned, np.random.get_state())


def _portable(error: BaseException, kind: type[BaseException]) -> BaseException:
    """An error or warning, or one of `kind` that says the same if pickle cannot restore it."""
    try:
        pickle.loads(cloudpickle.dumps(error))
    except Exception:
        other = kind(f"{type(error).__name__}: {error}")
        other.__notes__ = getattr(error, "__notes__", [])
        return other
    return error
