"""scikit-learn's array API dispatch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import sklearn
from sklearn.utils import _array_api

__all__ = ["DEVICE_TAKES_HOST_INDICES", "array_api_dispatch"]

# Whether scikit-learn takes rows of device arrays by indices on the host outside its fits and scores (1.9).
DEVICE_TAKES_HOST_INDICES = hasattr(_array_api, "move_to")

_dispatches: ContextVar[bool] = ContextVar("manyfit_dispatches", default=False)


class _SkippedCheck:
    """A check that runs everywhere except inside `array_api_dispatch`."""

    def __init__(self, check: Callable[[Any], None]) -> None:
        self._check = check

    def __call__(self, array_api_dispatch: Any) -> None:
        if not _dispatches.get():
            self._check(array_api_dispatch)


def _skip_check() -> None:
    """Wrap the present check, which may be the one of cuML's accelerator, perhaps around ours."""
    present = _array_api._check_array_api_dispatch
    if not isinstance(present, _SkippedCheck):
        _array_api._check_array_api_dispatch = _SkippedCheck(present)


@contextmanager
def array_api_dispatch() -> Iterator[None]:
    """Switch scikit-learn's array API dispatch on for a block, also where SciPy's is off.

    scikit-learn refuses dispatch unless ``SCIPY_ARRAY_API=1`` was set before SciPy was imported. The code in
    such blocks does not use SciPy (a test runs all of it without the variable), so the check is skipped here.
    """
    _skip_check()
    token = _dispatches.set(True)
    try:
        with sklearn.config_context(array_api_dispatch=True):
            yield
    finally:
        _dispatches.reset(token)
