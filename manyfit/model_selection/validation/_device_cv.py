"""Splitters for device data: they get host copies of the arrays that they read."""

from typing import Any

from sklearn.model_selection import check_cv

from manyfit.arrays import TransferCache
from manyfit.folds import splitter_arguments


def check_device_cv(cv: Any = 5, y: Any = None, *, classifier: bool = False) -> Any:
    """scikit-learn's ``check_cv``; the splitter also takes labels and groups on a device."""
    return HostInputSplitter(check_cv(cv, TransferCache()(y) if classifier else y, classifier=classifier))


class HostInputSplitter:
    """A splitter that gets host copies of the device arrays that it reads."""

    def __init__(self, cv: Any) -> None:
        self._cv = cv

    def split(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Split, as the splitter inside does."""
        X, y, params = splitter_arguments(self._cv, X, y, params, TransferCache())
        return self._cv.split(X, y, **params)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_cv":
            raise AttributeError(name)
        return getattr(self._cv, name)  # metadata routing asks for its requests


class BoundSplitter(HostInputSplitter):
    """A splitter bound to its data, of which its caller knows only the number of rows."""

    def __init__(self, cv: Any, X: Any, y: Any) -> None:
        super().__init__(cv._cv if type(cv) is HostInputSplitter else cv)
        self._data = X, y

    def split(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Split the bound data."""
        return super().split(*self._data, **params)
