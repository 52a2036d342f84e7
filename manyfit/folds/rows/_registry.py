"""From X to the `RowSource` that reads it."""

from collections.abc import Callable
from typing import Any, TypeGuard, cast

import numpy as np

from manyfit.arrays import is_xp_array
from manyfit.exceptions import Unsupported
from manyfit.folds.rows._csr import CsrRows
from manyfit.folds.rows._device import DeviceRows
from manyfit.folds.rows._host import NumPyRows
from manyfit.folds.rows._inputs import as_csr, as_matrix
from manyfit.folds.rows._source import RowSource
from manyfit.folds.rows.chunks._inputs import as_chunk_rows

_registered: list[tuple[Callable[[Any], bool], Callable[[Any], RowSource]]] = []


def register_row_source(matches: Callable[[Any], bool], factory: Callable[[Any], RowSource]) -> None:
    """Let a `RowSource` of your own read X in every search of this process.

    Parameters
    ----------
    matches : callable
        ``matches(X)`` says whether X, as the user passes it to ``fit``, is of this kind. It may be an object
        of any class. The latest registration that matches is used.
    factory : callable
        ``factory(X)`` returns the `RowSource`, or raises `Unsupported` with the reason why scikit-learn is to
        make the fits. It makes none if X is of a class that it cannot read: all fits have then to be shared,
        or the search raises a TypeError.
    """
    _registered.append((matches, factory))


def unregister_row_source(factory: Callable[[Any], RowSource]) -> None:
    """Take back all registrations of a factory.

    Parameters
    ----------
    factory : callable
        The object that was registered.
    """
    _registered[:] = [pair for pair in _registered if pair[1] is not factory]


def as_row_source(X: Any, memory: int | None = None) -> RowSource:
    """The rows of X, of any kind that families can read; raises `Unsupported` for other kinds.

    A memory map of more than `memory` bytes is read in chunks.
    """
    for matches, factory in reversed(_registered):
        if matches(X):
            rows = factory(X)
            break
    if memory is None or type(X) is not np.memmap or type(rows) is not NumPyRows or X.nbytes <= memory:
        return rows
    return as_chunk_rows(X, memory) or rows


def own_row_source(X: Any) -> RowSource | None:
    """The registered source of an X of a class that scikit-learn does not read; None for any other X."""
    if X is None or isinstance(X, np.ndarray | list | tuple) or is_xp_array(X):
        return None
    if hasattr(X, "tocsr") or hasattr(X, "to_numpy"):  # a sparse matrix, a frame
        return None
    try:
        return next(
            (factory(X) for matches, factory in reversed(_registered[_BUILT_IN:]) if matches(X)), None
        )
    except Unsupported:
        return None


def is_row_source(X: Any) -> TypeGuard[RowSource]:
    """Whether an object is a `RowSource`."""
    # One name tells arrays, matrices and frames apart: a check against the protocol takes 40 us. It also
    # reads `shape`, for which an X in chunks may count its rows in a pass.
    return hasattr(X, "passes") and (RowSource in type(X).__mro__ or isinstance(X, RowSource))


def wrap_rows(X: Any) -> RowSource:
    """The rows of an array or CSR matrix that was checked before, or of a `RowSource` itself."""
    if isinstance(X, np.ndarray):
        return NumPyRows(X)
    if hasattr(X, "tocsr"):
        return CsrRows(X)
    # A check against the protocol takes longer than those before it.
    return DeviceRows(X) if is_xp_array(X) else cast(RowSource, X)


def _require_numbers(X: RowSource) -> RowSource:
    if X.dtype == object:
        some = ", ".join(map(repr, getattr(X, "objects", ())[:5]))
        raise Unsupported(f"X has columns that are no numbers{some and f': {some}'}")
    return X


register_row_source(lambda X: True, lambda X: NumPyRows(as_matrix(X)))
register_row_source(is_xp_array, lambda X: DeviceRows(as_matrix(X)))
register_row_source(lambda X: hasattr(X, "tocsr"), lambda X: CsrRows(as_csr(X)))
_BUILT_IN = len(_registered)
register_row_source(is_row_source, _require_numbers)
