"""Fits that are ended if they take too long: each is made by another process, which can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import sklearn

from manyfit.model_selection.sharing._deferred_warnings import in_main_thread
from manyfit.model_selection.sharing._fit_process import FitAnswer, FitData, FitRequest, receive, send

# Seconds after which a process that makes no fits ends, and frees the data.
_IDLE_S = 5.0
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from manyfit.model_selection.sharing._fit_process import main; main()"
)
_LOCAL = threading.local()


class FitTooLong(TimeoutError):
    """A fit took longer than it may, and was ended."""


class FitProcessDied(RuntimeError):
    """The process of a fit has ended by itself."""


def fit_within(seconds: float, data: FitData, request: FitRequest) -> Any:
    """The result of a fit and its scores, made by a process of this thread's.

    Raises `FitTooLong` if that takes longer; the process is then killed. Raises what the fit has raised, and
    `FitProcessDied` if it has ended its process. Starting the process, and sending the data, do not count.
    """
    process = vars(_LOCAL).setdefault("process", _FitProcess())
    answer = process.ask(seconds, data, request)
    if answer.printed:
        print(answer.printed, end="", flush=True)
    for message, category, filename, line in answer.warned:
        warnings.warn_explicit(message, category, filename, line)
    if in_main_thread():
        np.random.set_state(answer.random_state)
    if answer.error is not None:
        raise answer.error
    return answer.result


def new_request(function: Any, estimator: Any, params: Any, i: int, split: Any, progress: Any) -> FitRequest:
    """A request with the configuration, warning filters and random state of this process."""
    return FitRequest(
        function, estimator, params, i, split, progress, sklearn.get_config(), list(warnings.filters),
        np.random.get_state(),
    )  # fmt: skip


class _FitProcess:
    """A process that makes one fit at a time; another one takes its place when it is killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._data: FitData | None = None
        self._idle: threading.Timer | None = None
        self._lock = threading.Lock()  # against the timer that ends an idle process

    def ask(self, seconds: float, data: FitData, request: FitRequest) -> FitAnswer:
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            try:
                process = self._ready(data)
                late = threading.Event()
                timer = threading.Timer(seconds, _kill, (process, late))
                timer.daemon = True
                timer.start()
                try:
                    send(process.stdin, request)  # type: ignore[arg-type]
                    answer: FitAnswer = receive(process.stdout)  # type: ignore[arg-type]
                except (EOFError, OSError) as error:
                    code = process.wait()
                    if late.is_set():
                        raise FitTooLong(
                            f"took more than fit_timeout={seconds:g} seconds, and was ended."
                        ) from None
                    raise FitProcessDied(f"ended its process, with exit code {code}.") from error
                finally:
                    timer.cancel()
            except BaseException:  # Ctrl-C, too: nobody will read the answer
                self._end()
                raise
            self._idle = threading.Timer(_IDLE_S, self._end_idle)
            self._idle.daemon = True
            self._idle.start()
            return answer

    def _ready(self, data: FitData) -> subprocess.Popen[bytes]:
        """The process, with the data of the search."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            path = json.dumps([one for one in sys.path if isinstance(one, str)])
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        if not data.is_same(self._data):
            send(self._process.stdin, data)  # type: ignore[arg-type]
            receive(self._process.stdout)  # type: ignore[arg-type]
            self._data = data
        return self._process

    def _end_idle(self) -> None:
        if self._lock.acquire(blocking=False):
            self._end()
            self._lock.release()

    def _end(self) -> None:
        process, self._process, self._data = self._process, None, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    stream.close()  # type: ignore[union-attr]


def _kill(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()
