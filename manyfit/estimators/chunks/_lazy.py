"""Methods of fitted estimators on Dask collections: the result is a Dask array, computed when it is read."""

import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

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

    A row of ones or zeros tells shape and dtype of the result, and errors are raised now. A later
    fit of the model does not change the result.
    """
    import dask.array as da
    from dask.delayed import delayed

    method = getattr(copy.copy(model), name)
    if not hasattr(X, "numblocks"):
        import pandas as pd

        row = pd.DataFrame({column: pd.Series([0], dtype=dtype) for column, dtype in X.dtypes.items()})
        empty = np.asarray(method(row))[:0]
        apply = delayed(partial(_apply, method=method, empty=empty), pure=True)
        shape = (np.nan, *empty.shape[1:])
        return da.concatenate([da.from_delayed(apply(part), shape, empty.dtype) for part in X.to_delayed()])
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    empty = np.asarray(method(np.ones((1, X.shape[1]), dtype=X.dtype)))[:0]
    more = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (X.chunks[0], empty.shape[1:])}
    apply = partial(_apply, method=method, empty=empty)
    return X.map_blocks(apply, dtype=empty.dtype, meta=empty, **more)


def _apply(block: Any, method: Any, empty: Array) -> Array:
    """The result for a block; scikit-learn takes none without rows."""
    return np.asarray(method(block)) if len(block) else empty
