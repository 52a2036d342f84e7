"""The data that installed searches read: those that scikit-learn reads by itself, too."""

from collections.abc import Iterable
from typing import Any

# Projects whose arrays and frames lie in the memory of the host; "builtins" for lists and None.
_HOSTS = frozenset({"builtins", "numpy", "pandas", "polars", "pyarrow", "scipy"})


def foreign_data(values: Iterable[Any]) -> str | None:
    """Why scikit-learn has to read some data: the type of the first value that is none of `_HOSTS`.

    Data on a device, in files or in Dask collections are read by manyfit's own classes only: scikit-learn
    raises for some of them, and an installed search raises the same.
    """
    for value in values:
        if type(value).__module__.partition(".")[0] not in _HOSTS:
            return f"data of the type {type(value).__module__}.{type(value).__qualname__}"
    return None
