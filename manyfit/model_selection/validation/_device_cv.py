"""Splitters of any kind, given of data on a device what they read."""

from typing import Any

from sklearn.model_selection import check_cv

from manyfit.arrays import TransferCache
from manyfit.folds import splitter_arguments


def check_device_cv(cv: Any = 5, y: Any = None, *, classifier: bool = False) -> Any:
    """scikit-learn's ``check_cv``, with a splitter for labels that may lie on a device.

    Parameters
    ----------
    cv : int, splitter or iterable
        As scikit-learn's.
    y : array-like, optional
        As scikit-learn's, or an array on a device.
    classifier : bool
        As scikit-learn's.

    Returns
    -------
    splitter
        Groups may lie on a device where y does not.
    """
    return HostInputSplitter(check_cv(cv, TransferCache()(y) if classifier else y, classifier=classifier))


class HostInputSplitter:
    """A splitter that is given of data on a device what it reads, on the host."""

    def __init__(self, cv: Any) -> None:
        self._cv = cv

    def split(self, X: Any, y: Any = None, **params: Any) -> Any:
        """As the splitter."""
        X, y, params = splitter_arguments(self._cv, X, y, params, TransferCache())
        return self._cv.split(X, y, **params)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_cv":
            raise AttributeError(name)
        return getattr(self._cv, name)  # metadata routing asks for its requests


class BoundSplitter(HostInputSplitter):
    """A splitter of data that its caller has no more than the number of rows of."""

    def __init__(self, cv: Any, X: Any, y: Any) -> None:
        super().__init__(cv._cv if type(cv) is HostInputSplitter else cv)
        self._data = X, y

    def split(self, X: Any, y: Any = None, **params: Any) -> Any:
        """As the splitter, of the data."""
        return super().split(*self._data, **params)
