"""How many threads the libraries below NumPy use while a batch runs."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits


@contextmanager
def limited_to(n: int | None, alone: bool) -> Iterator[None]:
    """Within it BLAS and OpenMP use so many threads.

    Parameters
    ----------
    n : int or None
        None changes nothing.
    alone : bool
        Whether no other thread of the process does this at the same time.
    """
    if n is None:
        yield
    elif alone:
        with threadpool_limits(n):
            yield
    else:
        openmp = ThreadpoolController().select(user_api="openmp")
        # OpenMP has a number for each thread.
        with openmp.limit(limits=n), _blas.limited_to(n):
            yield


class _Blas:
    """BLAS has a number for the process: the first of several batches sets it, the last restores it.

    Both is done by one thread, since threadpoolctl lets no other restore it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: Any = None
        self._thread: ThreadPoolExecutor | None = None

    @contextmanager
    def limited_to(self, n: int) -> Iterator[None]:
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


_blas = _Blas()
