"""A limit on the time of a call."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TooLong(Exception):
    """A call did not end in time."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in the context after so many seconds.

    There is no limit without signal timers, outside the main thread, or while another such timer runs.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
        or signal.getitimer(signal.ITIMER_REAL)[0]
    ):
        yield
        return

    def stop(*_: Any) -> None:
        raise TooLong(f"not done in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
