"""The process that makes fits which may be ended: it reads requests from its input, and answers them.

A request and an answer are pickles, each after its length in 8 bytes.
"""

from __future__ import annotations

import contextlib
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


@dataclass(frozen=True)
class FitData:
    """What the fits of a search have in common; sent once to each process."""

    X: Any
    y: Any
    options: Options

    def is_same(self, other: FitData | None) -> bool:
        """Whether it has the same objects as another."""
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


@dataclass(frozen=True)
class FitAnswer:
    """The result of a fit or the error that it raised, and what else it left."""

    result: Result | None
    error: BaseException | None
    printed: str
    warned: list[tuple[Any, Any, str, int]]
    random_state: Any


def send(stream: BinaryIO, message: Any) -> None:
    """Write a message."""
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
    with contextlib.suppress(EOFError):
        while True:
            message = receive(requests)
            if isinstance(message, FitData):
                data = message
                send(answers, "ready")
            else:
                assert data is not None
                _send_answer(answers, _answer(message, data))


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
            failed = error.with_traceback(None)
    warned = [(one.message, one.category, one.filename, one.lineno) for one in caught]
    return FitAnswer(result, failed, printed.getvalue(), warned, np.random.get_state())
