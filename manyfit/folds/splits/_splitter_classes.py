"""scikit-learn's splitters for data on a device: labels and groups are copied to the host once.

They are made when they are asked for, since that takes longer than a small search.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import model_selection

from manyfit.folds.splits._splitter_arguments import NAMES, READ_Y, host_copy, rows_of
from manyfit.introspection.class_names import register_drop_in

__all__ = ["SPLITTERS"]

NOTE = """This is scikit-learn's splitter, with the same folds, for data on a device too: of X only the number
of rows is read, and groups, and y if the folds depend on it, are copied to the host once for all splits.
Indices are NumPy arrays on the host."""


def _splitter(served: type) -> type:
    """A splitter of scikit-learn for data on any device."""
    read_y = served.__name__ in READ_Y

    class Splitter(served):  # type: ignore[misc]
        def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
            return super().split(rows_of(X), host_copy(y) if read_y else rows_of(y), host_copy(groups))

        def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
            return int(super().get_n_splits(rows_of(X), rows_of(y), host_copy(groups)))

    for name in ("split", "get_n_splits"):
        getattr(Splitter, name).__doc__ = getattr(served, name).__doc__
    Splitter.__name__ = Splitter.__qualname__ = served.__name__
    # Pickle finds the class by this name.
    Splitter.__module__ = "manyfit.model_selection"
    register_drop_in(Splitter, served)
    summary, _, rest = (inspect.getdoc(served) or "").partition("\n\n")
    Splitter.__doc__ = f"{summary}\n\n{NOTE}\n\n{rest}"
    return Splitter


SPLITTERS: dict[str, type] = {name: _splitter(getattr(model_selection, name)) for name in NAMES}
