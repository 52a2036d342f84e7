"""scikit-learn's functions of pairs of rows, for arrays on host or device: see `sklearn.metrics.pairwise`.

Functions that take no rows, or only check arguments, are scikit-learn's own.
"""

import inspect
from typing import Any

import sklearn.metrics.pairwise

from manyfit.metrics.functions.wrapper import FUNCTIONS, wrap_function


def _is_public(name: str, value: Any) -> bool:
    """Whether scikit-learn's module defines it for others; it has no ``__all__``."""
    if inspect.isfunction(value):
        return value.__module__ == sklearn.metrics.pairwise.__name__ and not name.startswith("_")
    return name.startswith(("PAIRED_", "PAIRWISE_"))


def _ours(name: str, value: Any) -> Any:
    if name in FUNCTIONS:  # some are in manyfit.metrics, too
        return FUNCTIONS[name]
    takes_rows = inspect.isfunction(value) and "X" in inspect.signature(value).parameters
    return wrap_function(value, __name__) if takes_rows and not name.startswith("check_") else value


# The installed scikit-learn decides which names exist.
_NAMES = {
    name: _ours(name, value)
    for name, value in vars(sklearn.metrics.pairwise).items()
    if _is_public(name, value)
}
globals().update(_NAMES)

__all__ = list(_NAMES)
