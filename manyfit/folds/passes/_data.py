"""The data that passes go over: rows of one X, on the host or on a device, behind the steps of each split."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from manyfit.arrays import is_array, to_host
from manyfit.exceptions import Unsupported
from manyfit.folds.moments._moments import middle
from manyfit.folds.moments._transformed import TransformedMoments
from manyfit.folds.passes._device import DevicePasses, scan
from manyfit.folds.passes._passes import DensePasses, Passes, SparsePasses
from manyfit.folds.passes._rare_features import merge_rare_features
from manyfit.folds.splits._atoms import AtomGroup, Rows

Array = NDArray[Any]


@dataclass(frozen=True)
class PassData:
    """Training sets that passes go over: rows of one X, seen behind the steps of each split.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, p)
        On the host or, dense, on a device.
    y : array of shape (n,)
        Numbers or labels, on the host or on a device.
    groups : sequence of AtomGroup
        Atoms of consecutive splits; together they have all splits.
    weight : ndarray of shape (n,) or None
        Sample weights of the fit; on the host.
    views : sequence of View or None
        For each split what its steps make of X; None without steps.
    memory_limit : int
        Bytes that all that is kept beside X may take, as far as it can be kept under it.
    basis : CSR array of shape (p_original, p), or None
        Where X is condensed, see `merge_rare_features`: its features in those that it had.
    origin : ndarray of shape (p,), or None
        Of the passes, where it is known, as `finite_middle` gives it.
    sklearn_stops : bool
        Whether settings are left alone at which scikit-learn's own solver may stop before it meets ``tol``.
    """

    X: Any
    y: Any
    groups: Sequence[AtomGroup]
    weight: Array | None
    views: Sequence[TransformedMoments | None]
    memory_limit: int = 2**30
    basis: Any = None
    origin: Array | None = None
    sklearn_stops: bool = False

    @cached_property
    def targets(self) -> Array:
        """What `y` holds, on the host: from a device it is brought once."""
        return to_host(self.y, label="y") if is_array(self.y) else np.asarray(self.y)

    def condensed(self) -> "PassData":
        """The same with as few features of a sparse X as its rows can be told apart by, or itself.

        Raises
        ------
        Unsupported
            If X has no entry.
        """
        if self.basis is not None:
            return self
        Z, T = merge_rare_features(self.X)
        if not Z.shape[1]:
            raise Unsupported("X holds nothing but zeros")
        return replace(self, X=Z, basis=T)

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len(self.views)


def require_classes(codes: Array, n_classes: int, groups: Sequence[AtomGroup]) -> None:
    """Raise `Unsupported` unless every training part holds every class: scikit-learn drops missing ones.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Class of each row, from 0.
    n_classes : int
        Number of classes.
    groups : sequence of AtomGroup
        The splits.
    """
    if n_classes < 2:
        raise Unsupported("y has one class")
    for group in groups:
        held = np.stack([np.bincount(codes[rows], minlength=n_classes) for rows in group.rows])
        if not (group.train @ held).all():
            raise Unsupported("a class is missing in a training part")


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix, which passes go over as it is.

    Parameters
    ----------
    X : array or sparse matrix
        What passes are to go over.

    Returns
    -------
    bool
        False for dense arrays, wherever they lie.

    Raises
    ------
    Unsupported
        If X is sparse and on a device.
    """
    if not hasattr(X, "tocsc"):
        return False
    if not scipy.sparse.issparse(X):
        raise Unsupported(f"X is a {type(X).__module__}.{type(X).__name__}: sparse rows are read on the host")
    return True


def finite_middle(X: Any) -> Array | None:
    """The origin that passes over X will have.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, p)
        On the host or on a device.

    Returns
    -------
    ndarray of shape (p,), or None
        On the host; None where X is sparse: of such there is no choice.

    Raises
    ------
    Unsupported
        If X holds anything that is not finite, or sums to it.

    Notes
    -----
    Reads X once; one synchronisation with a device.
    """
    if is_sparse(X):
        origin, finite = None, np.isfinite(X.data.sum(dtype=np.float64))
    elif isinstance(X, np.ndarray):
        finite = np.isfinite(X.sum(dtype=np.float64))
        origin = middle(X, np.empty((len(X), 0)), slice(0, len(X)))
    else:
        origin, finite = scan(X)
    if not finite:
        raise Unsupported("X holds NaN, infinity or numbers near them")
    return origin


def passes_over(X: Any, rows: Sequence[Rows], origin: Array | None = None) -> Passes:
    """Passes over rows, dense or sparse, where they lie.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, p)
        On the host or, dense, on a device.
    rows : sequence of slice or ndarray of int
        The atoms.
    origin : ndarray of shape (p,), optional
        Of a dense X, see `Passes`.

    Returns
    -------
    Passes
        Nothing but an origin that is not given is read yet; of a sparse X the columns are gathered.
    """
    if is_sparse(X):
        return SparsePasses(X, rows)
    passes = DensePasses if isinstance(X, np.ndarray) else DevicePasses
    return passes(X, rows, origin)
