"""Threads of BLAS and OpenMP while a batch runs."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits


@contextmanager
def limit_threads(n: int | None, single_thread: bool) -> Iterator[None]:
    """Limit the threads of BLAS and OpenMP; None changes nothing.

    `single_thread` says that no other thread of the process does this at the same time.
    """
    if n is None:
        yield
    elif single_thread:
        with threadpool_limits(n):
            yield
    else:
        openmp = ThreadpoolController().select(user_api="openmp")
        # OpenMP has a limit for each thread.
        with openmp.limit(limits=n), _blas.limit_to(n):
            yield


class _BlasLimit:
    """Limit of BLAS, one for the process: the first of several batches sets it, the last restores it.

    One thread does both, since threadpoolctl lets no other restore the limit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: Any = None
        self._thread: ThreadPoolExecutor | None = None

    @contextmanager
    def limit_to(self, n: int) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._thread = self._thread or ThreadPoolExecutor(1, "manyfit-blas")
                self._thread.submit(self._enter, n).result()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users and self._thread is not None:
                    self._thread.submit(self._leave).result()

    def _enter(self, n: int) -> None:
        self._limits = ThreadpoolController().select(user_api="blas").limit(limits=n)
        self._limits.__enter__()

    def _leave(self) -> None:
        self._limits.__exit__(None, None, None)


_blas = _BlasLimit()
