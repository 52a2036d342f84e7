"""Folds whose rows are summed within classes, once for all splits."""

from functools import cached_property
from typing import Any

from manyfit.folds._fold import Fold
from manyfit.folds._folded_matrix import FoldedMatrix
from manyfit.folds.moments._classes import ClassAtoms, ClassMoments, ClassSpreads, Labels


class ClassedFolds:
    """The splits of one matrix; sums over the atoms of a group of splits are made when they are first read.

    `passes` counts the passes over the rows that made them.
    """

    def __init__(self, data: FoldedMatrix) -> None:
        self.data, self.passes = data, 0.0
        self._read: _GroupSums | None = None

    def split(self, i: int) -> "ClassedFold":
        """The fold of split `i`."""
        return ClassedFold(self, i)

    @cached_property
    def _labels(self) -> Labels:
        return Labels.of(self.data.y)

    def sums(self, i: int) -> tuple["_GroupSums", int]:
        """The sums of the group that split `i` is in, and its position there."""
        group = next(one for one in self.data.splits.atom_groups if i in one.splits)
        if self._read is None or self._read.splits != group.splits:
            # Groups come one after the other: the sums of earlier ones are no longer needed.
            self._read = _GroupSums(self, ClassAtoms(self.data.X, self._labels, group), group.splits)
        return self._read, i - group.splits.start


class _GroupSums:
    """The sums over the atoms of some consecutive splits."""

    def __init__(self, folds: ClassedFolds, atoms: ClassAtoms, splits: range) -> None:
        self._folds, self.atoms, self.splits = folds, atoms, splits

    @cached_property
    def moments(self) -> Any:
        """See `ClassAtoms.moments`."""
        self._folds.passes += 1.0
        return self.atoms.moments()

    @cached_property
    def spreads(self) -> Any:
        """See `ClassAtoms.spreads`."""
        self._folds.passes += 1.0
        return self.atoms.spreads()


class ClassedFold:
    """`FoldedData` of a single split, with sums of its training rows within classes."""

    n_splits = 1

    def __init__(self, folds: ClassedFolds, i: int) -> None:
        self._folds, self._i = folds, i

    def fold(self, i: int) -> Fold:
        """The rows, copied when they are read."""
        return self._folds.data.fold(self._i)

    def class_moments(self, i: int) -> ClassMoments:
        """Moments of the classes of the training rows."""
        sums, place = self._folds.sums(self._i)
        return sums.atoms.merged_moments(sums.moments, place)

    def class_spreads(self, i: int) -> ClassSpreads:
        """Means of the classes of the training rows, and squares about them."""
        sums, place = self._folds.sums(self._i)
        return sums.atoms.merged_spreads(sums.spreads, place)
