"""Threads of BLAS and OpenMP while a batch runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController


@contextmanager
def limit_threads(n: int | None) -> Iterator[None]:
    """Limit the threads of BLAS and OpenMP; None changes nothing."""
    if n is None:
        yield
        return
    libraries = ThreadpoolController()
    # OpenMP has a limit for each thread.
    with _blas.limit_to(n, libraries), libraries.select(user_api="openmp").limit(limits=n):
        yield


class _BlasLimit:
    """Limit of BLAS, one for the process: the first of several batches sets it, the last restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    @contextmanager
    def limit_to(self, n: int, libraries: ThreadpoolController) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limits = libraries.limit(limits=n, user_api="blas")
                _let_other_threads_limit(libraries)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limits.restore_original_limits()
                    _let_other_threads_limit(libraries)


def _let_other_threads_limit(libraries: ThreadpoolController) -> None:
    """Give up what threadpoolctl reserves for the thread that has set a limit: to change it."""
    with libraries.limit(limits=None):
        pass


_blas = _BlasLimit()
