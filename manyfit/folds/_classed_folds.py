"""Folds with sums of their training rows within classes, for naive Bayes and discriminants."""

from functools import cached_property

from manyfit.folds._fold import Fold
from manyfit.folds._folded_matrix import FoldedMatrix
from manyfit.folds.moments._classes import ClassAtoms, ClassMoments, ClassSpreads, Labels
from manyfit.folds.moments._counts import ClassCounts
from manyfit.folds.rows.chunks._sums import ChunkSums


class ClassedFolds:
    """The splits of one matrix; sums over the atoms of a group of splits are made when first read.

    `alone` says whether they are made for each split by itself.
    """

    def __init__(self, data: FoldedMatrix, alone: bool = False) -> None:
        self.data, self._alone, self._passes = data, alone, 0.0
        self._read: ClassAtoms | None = None

    @property
    def passes(self) -> float:
        """The passes over the rows that made the sums."""
        return self._passes + (0.0 if self._read is None else self._read.passes)

    def split(self, i: int) -> "ClassedFold":
        """The fold of split `i`."""
        return ClassedFold(self, i)

    @cached_property
    def _labels(self) -> Labels:
        return Labels.of(self.data.y)

    def atoms(self, i: int) -> ClassAtoms:
        """The atoms of the group that split `i` is in."""
        if self._read is None or i not in self._read.group.splits:
            # Groups come one after the other: the sums of earlier ones are no longer needed.
            group = next(one for one in self.data.splits.atom_groups if i in one.splits)
            group = group.of_split(i) if self._alone else group
            read = ClassAtoms(self.data.X, self._labels, group, self.data.weights.fit)
            self._passes, self._read = self.passes, read
        return self._read


class ClassedFold:
    """`FoldedData` of a single split, with sums of its training rows within classes."""

    n_splits = 1

    def __init__(self, folds: ClassedFolds, i: int) -> None:
        self._folds, self._i = folds, i

    def fold(self, i: int) -> Fold:
        """The rows, copied when they are read."""
        return self._folds.data.fold(self._i)

    @property
    def is_in_chunks(self) -> bool:
        """Whether the rows are read in chunks; the `rows` of the fold are then `SomeRows`."""
        return isinstance(self._folds.data.X, ChunkSums)

    def class_moments(self, i: int) -> ClassMoments:
        """Moments of the classes of the training rows."""
        return self._folds.atoms(self._i).merged_moments(self._i)

    def class_counts(self, i: int, threshold: float | None) -> ClassCounts:
        """Sums of the features of the classes of the training rows; see `count_classes`."""
        train, _ = self._folds.data.splits.indices(self._i)
        return self._folds.atoms(self._i).counts_of(self._i, train, threshold)

    def class_spreads(self, i: int) -> ClassSpreads:
        """Means of the classes of the training rows, and squares about them."""
        return self._folds.atoms(self._i).merged_spreads(self._i)
