"""Methods of fitted estimators on Dask collections: the result is a Dask array, computed when it is read."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Array = NDArray[Any]
Method = Callable[[Any], Any]

# Methods whose result has a row for each row of X.
ROWWISE = frozenset(
    {
        "decision_function",
        "inverse_transform",
        "predict",
        "predict_joint_log_proba",
        "predict_log_proba",
        "predict_proba",
        "score_samples",
        "transform",
    }
)


def lazily(model: Any, name: str, X: Any) -> Any:
    """A method of a fitted model on the chunks of a Dask array, or the partitions of a frame of numbers.

    A row tells shape and dtype of the result, and errors are raised now. A later fit of the model does not
    change the result. Where the method gives a list, an array for each target, there is a list of Dask
    arrays, each of which calls the method. Where it gives sparse matrices, the chunks are CSR.
    """
    method = getattr(copy.copy(model), name)
    found = _of_a_row(method, X)
    if isinstance(found, list):
        return [_by_chunk(partial(_nth, method, k), _as_array(one)[:0], X) for k, one in enumerate(found)]
    return _by_chunk(method, _as_array(found)[:0], X)


def _of_a_row(method: Method, X: Any) -> Any:
    """What a method makes of a row of ones or zeros; of the first row of X where it takes none of these."""
    if hasattr(X, "numblocks"):
        made, parts = np.ones((1, X.shape[1]), dtype=X.dtype), X.blocks
        made = type(X._meta)(made) if scipy.sparse.issparse(X._meta) else made
    else:
        import pandas as pd

        made = pd.DataFrame({name: pd.Series([0], dtype=dtype) for name, dtype in X.dtypes.items()})
        parts = X.partitions
    try:
        return method(made)
    except Exception:  # an encoder may know no 1; other errors are raised again
        n = X.numblocks[0] if hasattr(X, "numblocks") else X.npartitions
        rows = (parts[k].compute()[:1] for k in range(n))
        return method(next((row for row in rows if row.shape[0]), made))


def _by_chunk(method: Method, empty: Array, X: Any) -> Any:
    """A method on all chunks; `empty` is a result without rows."""
    import dask.array as da
    from dask.delayed import delayed

    apply = partial(_apply, method=method, empty=empty)
    if not hasattr(X, "numblocks"):
        later, shape = delayed(apply, pure=True), (np.nan, *empty.shape[1:])
        return da.concatenate([da.from_delayed(later(part), shape, meta=empty) for part in X.to_delayed()])
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    more = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (X.chunks[0], empty.shape[1:])}
    return X.map_blocks(apply, dtype=empty.dtype, meta=empty, **more)


def _apply(block: Any, method: Method, empty: Array) -> Array:
    """The result for a block; scikit-learn takes none without rows."""
    return _as_array(method(block)) if block.shape[0] else empty


def _as_array(found: Any) -> Array:
    """A result as an array, or as a CSR matrix if it is sparse."""
    return found.tocsr() if scipy.sparse.issparse(found) else np.asarray(found)


def _nth(method: Method, k: int, block: Any) -> Any:
    """One of the arrays that a method gives."""
    return method(block)[k]
