"""X as a matrix of numbers, if scikit-learn would read it as one."""

from typing import Any

import numpy as np
import scipy.sparse

from manyfit.arrays import device, float_dtype, is_xp_array, numpy_dtype
from manyfit.exceptions import Unsupported
from manyfit.folds.splits._atoms import Array

# scikit-learn converts other dtypes by rules, warnings and errors of its own.
NUMBERS = frozenset(["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])


def as_matrix(X: Any) -> Array:
    """X as a matrix of float32, float64, integers or bools, without a look at its values.

    Arrays are returned as they are, on any device; a DataFrame is copied if its columns do not lie in one
    array. Raises `Unsupported` for anything else, such as lists, other dtypes and subclasses of ndarray.
    """
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        X = _frame_to_numpy(X)
    if type(X) not in (np.ndarray, np.memmap) and not is_xp_array(X):
        way = ": pass numpy.asarray(X)" if isinstance(X, (list, tuple)) else ""
        raise Unsupported(f"X is a {type(X).__name__}, not a dense array or DataFrame{way}")
    if X.ndim != 2:
        raise Unsupported(f"X has {X.ndim} dimensions, not two")
    if not has_dtype(X, NUMBERS | {"b1"}):
        raise Unsupported(f"X has the dtype {X.dtype}, not float32, float64, integer or bool")
    if 0 in X.shape:
        raise Unsupported(f"X is empty: shape {X.shape}")
    if is_xp_array(X) and "float64" not in str(float_dtype(X)):
        # Sums of squares in float32 keep too few digits for moments.
        raise Unsupported(f"the device {device(X)} has no float64, so that fits there are made in float32")
    return X


def holds_categories(X: Any) -> bool:
    """Whether X is a pandas frame of categories, and of numbers or bools of NumPy beside them."""
    frame = type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "columns")
    dtypes = list(X.dtypes) if frame else []
    others = [dtype for dtype in dtypes if str(dtype) != "category"]
    numbers = all(isinstance(dtype, np.dtype) and dtype.str[1:] in NUMBERS | {"b1"} for dtype in others)
    return len(others) < len(dtypes) and numbers and 0 not in X.shape


def has_dtype(X: Any, dtypes: frozenset[str]) -> bool:
    """Whether the dtype of an array is one of `dtypes`, in the byte order of this machine."""
    try:
        dtype = numpy_dtype(X)
    except TypeError:  # NumPy has no such dtype
        return False
    return dtype.str[1:] in dtypes and dtype.isnative


def as_matrix_or_csr(X: Any) -> Any:
    """X as `as_matrix` gives it, or as a finite CSR matrix of float32 or float64 on the host."""
    return as_csr(X) if hasattr(X, "tocsr") else as_matrix(X)


def as_csr(X: Any) -> Any:
    """A sparse matrix of the host as a finite CSR matrix of float32 or float64."""
    if not scipy.sparse.issparse(X):
        raise Unsupported(f"X is a {type(X).__module__}.{type(X).__name__}: sparse rows are read on the host")
    if X.ndim != 2 or X.dtype.str[1:] not in ("f4", "f8", "i1", "i2", "i4", "i8") or 0 in X.shape:
        raise Unsupported(f"X is sparse with {X.ndim} dimensions, shape {X.shape} and dtype {X.dtype}")
    X = X.tocsr()
    if X.dtype.kind == "i":
        X = X.astype(np.float64)  # as scikit-learn does with counts
    if not np.isfinite(X.data).all():
        raise Unsupported("X holds NaN or infinity")
    return X


def _frame_to_numpy(frame: Any) -> Array:
    names = list(frame.columns)
    if any(isinstance(name, str) for name in names) and not all(isinstance(name, str) for name in names):
        raise Unsupported("the columns of X have names of several types")
    if len(set(names)) < len(names):
        raise Unsupported("columns of X have the same name")
    dtypes = frame.dtypes.tolist() if hasattr(frame.dtypes, "tolist") else None
    for name, dtype in zip(names, dtypes or (), strict=False):
        if not isinstance(dtype, np.dtype):
            way = "; as float64 they are read" if getattr(dtype, "kind", "O") in "biuf" else ""
            raise Unsupported(
                f"X has columns of pandas extension dtypes, such as {name!r} of dtype {dtype}{way}"
            )
    if dtypes is not None and any(dtype.kind == "b" for dtype in dtypes):
        # pandas makes objects of bools beside numbers; scikit-learn reads both as numbers.
        common = np.result_type(*dtypes) if all(dtype.kind in "biuf" for dtype in dtypes) else None
        return np.asarray(frame.to_numpy(dtype=common))
    return np.asarray(frame.to_numpy())
