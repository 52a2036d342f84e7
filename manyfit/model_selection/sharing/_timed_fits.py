"""Fits that are ended if they take too long: each is made by another process, which can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

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
    `FitProcessDied` if it has ended its process. Starting the process, sending what it needs, and importing
    the modules of the estimator do not count.
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
                answer = self._answer(seconds, data, request)
            except BaseException:  # Ctrl-C, too: nobody will read the answer
                self._end()
                raise
            self._idle = threading.Timer(_IDLE_S, self._end_idle)
            self._idle.daemon = True
            self._idle.start()
            return answer

    def _answer(self, seconds: float, data: FitData, request: FitRequest) -> FitAnswer:
        late = threading.Event()
        timer = threading.Timer(seconds, self._end_late, (late,))
        timer.daemon = True
        try:
            process = self._ready(data)
            send(process.stdin, replace(request, seconds=seconds))  # type: ignore[arg-type]
            receive(process.stdout)  # type: ignore[arg-type]
            timer.start()
            answer: FitAnswer = receive(process.stdout)  # type: ignore[arg-type]
        except (EOFError, OSError) as error:
            _join(timer)
            if late.is_set():
                raise FitTooLong(f"took more than fit_timeout={seconds:g} seconds, and was ended.") from None
            code = None if self._process is None else self._process.wait()
            raise FitProcessDied(f"ended its process, with exit code {code}.") from error
        finally:
            _join(timer)
        if late.is_set():  # just after the answer
            self._end()
        return answer

    def _ready(self, data: FitData) -> subprocess.Popen[bytes]:
        """The process, with the data of the search."""
        if self._process is None or self._process.poll() is not None:
            self._end()
            path = json.dumps([one for one in sys.path if isinstance(one, str)])
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
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

    def _end_late(self, late: threading.Event) -> None:
        late.set()
        if self._process is not None:
            _kill(self._process)

    def _end(self) -> None:
        process, self._process, self._data = self._process, None, None
        if process is not None:
            _kill(process)
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    stream.close()  # type: ignore[union-attr]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with those that it has started: one that lives on would keep its output open."""
    if process.returncode is not None:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _join(timer: threading.Timer) -> None:
    """Cancel a timer; it does nothing after that."""
    timer.cancel()
    if timer.is_alive():
        timer.join()
