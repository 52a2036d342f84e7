"""Work on rows by our own threads, with one BLAS thread each.

Blocks that fit a cache are too small to split inside BLAS: its threads would wait for each other after every
block.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")

# BLAS has one number of threads for the whole process: a thread that changes it holds this lock meanwhile.
# Not reentrant: a task must not call `map_threads`.
_lock = Lock()


def _renew_lock() -> None:
    """A process that is forked while another thread holds the lock would wait for it for ever."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """Threads that BLAS may use now, as the environment, joblib or the user limited them."""
    return max((int(library["num_threads"]) for library in _blas().info()), default=1)


_thread = local()


@contextmanager
def check_blas_threads(check: Callable[[], None]) -> Iterator[None]:
    """Within it a pass in this thread first calls `check`, which may raise to end the work."""
    before = getattr(_thread, "check", None)
    _thread.check = check
    try:
        yield
    finally:
        _thread.check = before


def before_pass() -> None:
    """Call the check that `check_blas_threads` set in this thread, if any."""
    check = getattr(_thread, "check", None)
    if check is not None:
        check()


def map_threads(task: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """``[task(item) for item in items]``, on as many threads as BLAS would use.

    A task must not call `map_threads`. An exception, also KeyboardInterrupt, waits for the running tasks and
    drops the others.
    """
    before_pass()
    with _lock:
        n_threads = min(blas_threads(), len(items))
        if n_threads <= 1:
            with _blas().limit(limits=1):
                return [task(item) for item in items]
        with _blas().limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
            futures = [pool.submit(task, item) for item in items]
            try:
                return [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
