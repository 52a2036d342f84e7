"""scikit-learn's array API dispatch."""

from collections.abc import Iterator
from contextlib import contextmanager

import sklearn
from sklearn.utils import _array_api

from manyfit._compat._replaced import replaced

__all__ = ["DEVICE_TAKES_HOST_INDICES", "array_api_dispatch"]

# Whether scikit-learn takes rows of device arrays by indices on the host outside its fits and scores (1.9).
DEVICE_TAKES_HOST_INDICES = hasattr(_array_api, "move_to")


@contextmanager
def array_api_dispatch() -> Iterator[None]:
    """Switch scikit-learn's array API dispatch on for a block, also where SciPy's is off.

    scikit-learn refuses dispatch unless ``SCIPY_ARRAY_API=1`` was set before SciPy was imported. The code in
    such blocks does not use SciPy (a test runs all of it without the variable), so the check is skipped here.
    """
    with (
        replaced(_array_api, "_check_array_api_dispatch", lambda dispatch: None),
        sklearn.config_context(array_api_dispatch=True),
    ):
        yield
