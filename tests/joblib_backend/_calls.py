"""What tests have tasks of `joblib.Parallel` do."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from distributed import get_worker

LARGE = 40_000  # numbers of an array that travels apart
SECONDS = 5.0


def identity(x: Any) -> Any:
    return x


def total(x: Any) -> float:
    return float(np.asarray(x).sum())


def fails_at(i: int, where: int, ran: str | None = None) -> int:
    if ran:
        with open(ran, "a") as file:
            file.write(f"{i}\n")
    if i == where:
        raise ValueError(f"no such {i}")
    time.sleep(0.02)
    return i


def square(x: Any) -> Any:
    return x * x


def worker_of(_: Any) -> str:
    return get_worker().address


def in_a_task() -> bool:
    try:
        get_worker()
    except ValueError:
        return False
    return True


class AtATime:
    """Counts how many run at a time; workers of this process share it through its name."""

    now = most = 0
    lock = threading.Lock()

    @classmethod
    def run(cls, seconds: float) -> None:
        with cls.lock:
            cls.now += 1
            cls.most = max(cls.most, cls.now)
        time.sleep(seconds)
        with cls.lock:
            cls.now -= 1


def wait_a_bit(seconds: float) -> None:
    from tests.joblib_backend._calls import AtATime

    AtATime.run(seconds)
