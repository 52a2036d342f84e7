"""How many folds of a search are kept at once, by the size of X."""

from typing import Any

import numpy as np

from manyfit.arrays import is_xp_array
from manyfit.model_selection.sharing._fold_cache import nbytes_of


def retained_folds(X: Any, n_splits: int, memory_limit: int) -> int:
    """How many folds are kept at once where each is read several times: a quarter of the limit is theirs.

    A fold is about as large as X; of what does not tell its size, one is kept.
    """
    size = _size(X)
    return 1 if size is None else max(1, min(n_splits, memory_limit // 4 // max(size, 1)))


def _size(X: Any) -> int | None:
    """Bytes of X, if it tells; of a list those of its references, since a fold has the same items."""
    if is_xp_array(X):
        return nbytes_of(X)
    if isinstance(X, list | tuple | range):
        return 8 * len(X)
    if hasattr(X, "memory_usage"):  # pandas
        return int(np.sum(X.memory_usage()))  # of a series one number, of a frame one a column
    if hasattr(X, "estimated_size"):  # polars
        return int(X.estimated_size())
    size = getattr(X, "nbytes", None) or getattr(getattr(X, "data", None), "nbytes", None)
    return None if size is None else int(size)
