"""The data that passes go over: rows of one X, on the host or on a device, behind the steps of each split."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from manyfit.arrays import is_array, to_host
from manyfit.exceptions import Unsupported
from manyfit.folds.moments._transformed import TransformedMoments
from manyfit.folds.rows._registry import wrap_rows
from manyfit.folds.splits._atoms import Array, AtomGroup


@dataclass(frozen=True)
class PassData:
    """Training sets that passes go over: rows of one X, seen through the affine steps of each split."""

    X: Any  # the rows; an array or CSR matrix is wrapped
    y: Any  # (n,), numbers or labels, on the host or on a device
    groups: Sequence[AtomGroup]  # atoms of consecutive splits; together they have all splits
    weight: Array | None  # (n,), sample weights of the fit; on the host
    views: Sequence[TransformedMoments | None]  # the steps of each split as a map of X; None without steps
    memory_limit: int = 2**30  # bytes that everything kept beside X may take, as far as possible
    basis: Any = None  # CSR, (p_original, p): maps merged features back to original ones, see `condensed`
    origin: Array | None = None  # (p,), origin of the passes, if `finite_middle` was called before
    # Whether to leave alone the settings at which scikit-learn's own solver may stop before it meets ``tol``.
    sklearn_stops: bool = False
    # Whether scikit-learn can fit what is left alone. If not, settings are shared, too, whose ``tol`` its
    # solver misses only because the loss no longer falls in floating point.
    sklearn_reads: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", wrap_rows(self.X))

    @cached_property
    def targets(self) -> Array:
        """`y` on the host; one of a device is copied once."""
        return to_host(self.y, label="y") if is_array(self.y) else np.asarray(self.y)

    def condensed(self) -> "PassData":
        """The same data with rare features of a sparse X merged; itself if X is dense or merged before."""
        X, basis = (self.X, None) if self.basis is not None else self.X.merge_features()
        return self if basis is None else replace(self, X=X, basis=basis)

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len(self.views)


def require_classes(codes: Array, n_classes: int, groups: Sequence[AtomGroup]) -> None:
    """Raise `Unsupported` unless every training part holds every class: scikit-learn drops missing ones.

    `codes`, (n,), is the class of each row, from 0.
    """
    if n_classes < 2:
        raise Unsupported("y has one class")
    if not trained_classes(codes, n_classes, groups).all():
        raise Unsupported("a class is missing in a training part")


def trained_classes(codes: Array, n_classes: int, groups: Sequence[AtomGroup]) -> Array:
    """Which classes the training part of each split holds, (n_splits, n_classes)."""
    found = []
    for group in groups:
        held = np.stack([np.bincount(codes[rows], minlength=n_classes) for rows in group.rows])
        found.append(group.train @ held > 0)
    return np.asarray(np.concatenate(found))


def finite_middle(X: Any) -> Array | None:
    """The origin of passes over the rows of X, (p,), on the host; None if X is sparse. One pass over X.

    Raises `Unsupported` if X holds numbers that are not finite, or sum to infinity, or constant columns only.
    """
    found = wrap_rows(X).scan()
    if not found.finite:
        raise Unsupported("X holds NaN, infinity or numbers near them")
    if found.origin is not None and not found.origin.size:
        raise Unsupported("all columns of X are constant")
    return found.origin
