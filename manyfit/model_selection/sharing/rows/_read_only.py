"""Read-only views of arrays, sparse matrices and frames.

An estimator may write into the array it is given. Shared data are therefore protected: an array by a
read-only view, a sparse matrix by read-only parts, a frame by a copy-on-write copy of read-only memory.
An estimator that insists on writing raises, and that setting is fitted by itself.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from manyfit.arrays import memory_owner
from manyfit.model_selection.sharing.rows._frame_copy import pandas_copy

T = TypeVar("T")
# The arrays that a sparse matrix consists of, by format.
SPARSE_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "coords"),
    "dia": ("data", "offsets"),
}


def frame_kind(X: Any) -> str | None:
    """ "pandas" or "polars" for their frames and series, else None; neither library is imported here."""
    for library in ("pandas", "polars"):
        module = sys.modules.get(library)
        if module is not None and isinstance(X, (module.DataFrame, module.Series)):
            return library
    return None


def is_numpy_array(X: Any) -> bool:
    """Whether a view of `X` is an array of the same type: not for other subclasses."""
    return type(X) in (np.ndarray, np.memmap)


def is_sparse_matrix(X: Any) -> bool:
    """Whether `X` is a SciPy sparse matrix or array of a format in `SPARSE_PARTS`."""
    return scipy.sparse.issparse(X) and X.format in SPARSE_PARTS


def is_protectable(X: Any) -> bool:
    """Whether `read_only_view` protects `X` from its readers."""
    return is_numpy_array(X) or is_sparse_matrix(X) or frame_kind(X) is not None


def can_be_shared(X: Any) -> bool:
    """Whether several fits may read rows of `X`.

    Each fit gets a copy of a list with the same items, since the items are the same under scikit-learn, too.
    """
    return X is None or is_protectable(X) or isinstance(X, (list, tuple, range))


def read_only_view(X: T) -> T:
    """A view of `X` that foreign code cannot change it through; `X` itself where there is none.

    It copies no data, except frames of pandas before 3 without copy-on-write, and the list of a list's items.
    """
    if type(X) is list:
        return copy.copy(X)
    if is_numpy_array(X):
        return _read_only(X)  # type: ignore
    if is_sparse_matrix(X):
        return change_parts(X, _read_only)
    kind = frame_kind(X)
    if kind == "pandas":
        return X.copy(deep=False) if _copy_on_write() else pandas_copy(X, bytearray)  # type: ignore
    return X.clone() if kind == "polars" else X  # type: ignore[attr-defined, no-any-return]


def private_copy(X: T) -> T:
    """A copy of a pandas object that nobody else can change, in read-only memory where possible; else `X`."""
    if frame_kind(X) != "pandas":
        return X
    if not _copy_on_write():
        return pandas_copy(X, bytearray)  # type: ignore[no-any-return]
    copied = pandas_copy(X, bytes)
    _lock_frame(copied)  # pickling has not copied all of it
    return copied  # type: ignore[no-any-return]


def change_parts(X: T, change: Callable[[np.ndarray], np.ndarray]) -> T:
    other = copy.copy(X)  # it keeps the flags, so that SciPy does not check for sorted indices again
    for name in SPARSE_PARTS[other.format]:  # type: ignore[attr-defined]
        part = getattr(X, name)
        setattr(other, name, tuple(map(change, part)) if isinstance(part, tuple) else change(part))
    return other


def _read_only(part: np.ndarray) -> np.ndarray:
    view = part.view()
    view.flags.writeable = False
    return view


def _copy_on_write() -> bool:
    pandas = sys.modules["pandas"]
    return int(pandas.__version__.split(".")[0]) >= 3 or pandas.options.mode.copy_on_write is True


def _lock_frame(frame: Any) -> None:
    """Make the memory of a frame read-only for good: no view of it can be made writeable again.

    scikit-learn (check_array, force_writeable) makes the read-only array that pandas shows of a frame
    writeable, unless its memory is read-only: then it copies.
    """
    if frame.ndim == 1:
        if isinstance(frame.dtype, np.dtype):
            memory_owner(frame.to_numpy()).flags.writeable = False
        return
    dtypes = list(frame.dtypes)
    if dtypes and isinstance(dtypes[0], np.dtype) and len(set(dtypes)) == 1:
        whole = frame.to_numpy()
        if np.may_share_memory(whole, frame.iloc[:, 0].to_numpy()):  # one block of memory
            memory_owner(whole).flags.writeable = False
            return
    for j in range(len(dtypes)):
        _lock_frame(frame.iloc[:, j])
