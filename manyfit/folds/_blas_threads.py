"""Work on rows by threads of our own, with one BLAS thread each.

Blocks that fit a cache are too small to be worth splitting inside BLAS: its threads would meet after
every block, and wait for each other where the machine has other work.
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

# BLAS has one number of threads for the whole process: who sets it holds this lock until it is set back.
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
    """Within it a pass in this thread calls `check` first, which may raise to put an end to the work.

    Parameters
    ----------
    check : callable
        Called without arguments, before each pass over the rows.

    Yields
    ------
    None
    """
    before = getattr(_thread, "check", None)
    _thread.check = check
    try:
        yield
    finally:
        _thread.check = before


def before_pass() -> None:
    """Call what `check_blas_threads` was given in this thread, if anything."""
    check = getattr(_thread, "check", None)
    if check is not None:
        check()


def map_threads(task: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """``[task(item) for item in items]``, on as many threads as BLAS would use.

    Parameters
    ----------
    task : callable
        Called with one item; must not call `map_threads` itself.
    items : sequence
        What it is called with.

    Returns
    -------
    list
        The results in the order of the items.

    Notes
    -----
    An exception, also KeyboardInterrupt, waits for the items that are being worked on and drops the others.
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
