"""Pickles of drop-in estimators, with scikit-learn's version and with arrays on any device."""

from __future__ import annotations

import pickle
import types
import warnings
from typing import Any

import cloudpickle
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

_VERSION = "_sklearn_version"


class _WithModules:
    """A value that holds modules, as scikit-learn's losses that keep an array namespace."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (cloudpickle.dumps(self.value),)


def _holds_modules(value: Any, depth: int = 3) -> bool:
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict) or isinstance(value, type) or not depth:
        return False
    return any(isinstance(v, types.ModuleType) or _holds_modules(v, depth - 1) for v in attributes.values())


def getstate(self: Any) -> dict[str, Any]:
    """The pickled state with scikit-learn's version, which scikit-learn adds for its own modules only."""
    state = BaseEstimator.__getstate__(self)
    kept = {name: _WithModules(value) if _holds_modules(value) else value for name, value in state.items()}
    return {**kept, _VERSION: sklearn.__version__}


def setstate(self: Any, state: dict[str, Any]) -> None:
    """Restore a pickled state, with scikit-learn's warning if another version of it made the pickle."""
    version = state.pop(_VERSION, None)
    if version not in (None, sklearn.__version__):
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=type(self).__name__,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=version,
            ),
            stacklevel=2,
        )
    vars(self).update(
        {name: value.value if isinstance(value, _WithModules) else value for name, value in state.items()}
    )
