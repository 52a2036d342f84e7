"""Work on rows by our own threads, with one BLAS thread each.

Blocks that fit a cache are too small to split inside BLAS: its threads would wait for each other after every
block.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from threading import Lock, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def _limit_blas() -> Callable[[], None]:
    """Give BLAS one thread; the function that it returns gives BLAS its threads back, from any thread.

    The limits of threadpoolctl can be undone only by the thread that sets them.
    """
    libraries = _blas().lib_controllers
    before = [(library, library.get_num_threads()) for library in libraries]
    _set_threads([(library, 1) for library in libraries])
    changed = [(library, n) for library, n in before if library.get_num_threads() != n]
    return partial(_set_threads, changed)


def _set_threads(numbers: Sequence[tuple[Any, int]]) -> None:
    for library, n in numbers:
        library.set_num_threads(n)
    with _blas().limit(limits=None):
        pass  # at its end threadpoolctl lets other threads set numbers, too


class _Workers:
    """The threads that work in place of those of BLAS, kept for as long as somebody holds them.

    BLAS has one number of threads for the whole process: the first to come sets it to one, and the last to go
    restores it.
    """

    def __init__(self) -> None:
        self.n_threads = 0  # that BLAS may use, while somebody holds it at one
        self._n_holders = 0
        self._changing, self._mapping = Lock(), Lock()
        self._held = ExitStack()
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        with self._changing:
            if self._n_holders == 0:
                n_threads = blas_threads()
                self._held.callback(_limit_blas())
                self.n_threads = n_threads
            self._n_holders += 1
        try:
            yield
        finally:
            with self._changing:
                self._n_holders -= 1
                if self._n_holders == 0:
                    self.n_threads, self._pool = 0, None
                    self._held.close()

    def map(self, task: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """One at a time in the process: together they use the threads of BLAS, not more."""
        with self._mapping, self.hold():
            if min(self.n_threads, len(items)) <= 1:
                return [task(item) for item in items]
            if self._pool is None:
                self._pool = self._held.enter_context(ThreadPoolExecutor(self.n_threads))
            futures = [self._pool.submit(task, item) for item in items]
            try:
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                wait(futures)
                raise


_workers = _Workers()


def _renew_workers() -> None:
    """A process that is forked while another thread holds a lock would wait for it for ever."""
    global _workers
    _workers = _Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_workers)


def blas_threads() -> int:
    """Threads that BLAS may use now, as the environment, joblib or the user limited them."""
    return _workers.n_threads or max((int(library["num_threads"]) for library in _blas().info()), default=1)


def single_blas_thread() -> AbstractContextManager[None]:
    """Give BLAS one thread within it; `map_threads` keeps its own threads until the end.

    For work that asks much of small matrices between its passes: BLAS wakes its threads for each of them.
    """
    return _workers.hold()


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
    return _workers.map(task, items)
