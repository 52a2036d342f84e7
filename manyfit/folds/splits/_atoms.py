"""Atoms: rows with the same role, training or test, in all splits.

A summary that adds up over rows (moments, counts) is computed once for each atom; the summary of any training
or test set is a merge of atoms. KFold has k atoms, TimeSeriesSplit k + 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rows = slice | NDArray[np.intp]


@dataclass(frozen=True)
class AtomGroup:
    """Some consecutive splits and the atoms of their rows.

    `rows` are disjoint sets, slices if they are contiguous. `train` and `test`, (n_splits, n_atoms), say how
    often each split repeats the rows of each atom in its training and its test set.
    """

    splits: range
    rows: list[Rows]
    train: NDArray[np.float64]
    test: NDArray[np.float64]

    def of_split(self, i: int) -> "AtomGroup":
        """The same atoms of one of the splits."""
        own = slice(i - self.splits.start, i - self.splits.start + 1)
        return AtomGroup(range(i, i + 1), self.rows, self.train[own], self.test[own])


def only_splits(groups: Sequence[AtomGroup], kept: Sequence[int]) -> list[AtomGroup]:
    """The groups with some of their splits only, which are numbered from 0."""
    found, start = list[AtomGroup](), 0
    for group in groups:
        own = [i - group.splits.start for i in kept if i in group.splits]
        if own:
            splits, start = range(start, start + len(own)), start + len(own)
            found.append(AtomGroup(splits, group.rows, group.train[own], group.test[own]))
    return found


def atoms_of_partition(tests: Sequence[Rows]) -> AtomGroup:
    """Atoms of a partition: the test sets themselves; each split trains on all the others."""
    own = np.eye(len(tests))
    rows = [t if isinstance(t, slice) else contiguous(t) for t in tests]
    return AtomGroup(range(len(tests)), rows, 1.0 - own, own)


def atoms_of_splits(splits: Sequence[tuple[Any, Any]], n_samples: int) -> list[AtomGroup]:
    """Atoms of any splits, in as few groups of consecutive splits as keep the atoms few.

    A group grows while its atoms are at most two more than its splits (a partition has as many, a growing
    window one more). Shuffled and bootstrapped splits end up one to a group: one pass over the rows each, as
    many as their fits would make. Raises `IndexError` if an index is out of range.
    """
    groups: list[AtomGroup] = []
    pattern = empty = _Pattern(np.zeros(n_samples, dtype=np.intp))
    start = 0
    for i, split in enumerate(splits):
        # How often the split trains and tests on each row.
        counts = [np.bincount(as_rows(index, n_samples), minlength=n_samples) for index in split]
        grown = pattern.refined(*counts)
        if i > start and grown.n_used > (i - start + 1) + 2:
            groups.append(pattern.group(range(start, i)))
            grown, start = empty.refined(*counts), i
        pattern = grown
    groups.append(pattern.group(range(start, len(splits))))
    return groups


class _Pattern(NamedTuple):
    """The rows labelled by their roles in a run of splits; `train` and `test` are (n_splits, n_atoms)."""

    labels: NDArray[np.intp]
    train: NDArray[np.float64] = np.empty((0, 1))
    test: NDArray[np.float64] = np.empty((0, 1))

    @property
    def n_used(self) -> int:
        return int(np.count_nonzero((self.train + self.test).any(axis=0)))

    def refined(self, train: NDArray[np.intp], test: NDArray[np.intp]) -> "_Pattern":
        """The pattern with one more split, which trains and tests so often on each row."""
        size = int(test.max(initial=0)) + 1
        both = train * size + test
        combined = self.labels * (int(both.max(initial=0)) + 1) + both
        _, first, labels = np.unique(combined, return_index=True, return_inverse=True)
        old = self.labels[first]
        roles = (np.vstack([a[:, old], b[first]]) for a, b in ((self.train, train), (self.test, test)))
        return _Pattern(labels, *roles)

    def group(self, splits: range) -> AtomGroup:
        used = np.flatnonzero((self.train + self.test).any(axis=0))
        order = np.argsort(self.labels, kind="stable")
        ends = np.cumsum(np.bincount(self.labels, minlength=self.train.shape[1]))
        rows = [contiguous(order[ends[a - 1] if a else 0 : ends[a]]) for a in used]
        return AtomGroup(splits, rows, self.train[:, used], self.test[:, used])


def as_rows(index: Any, n_samples: int) -> NDArray[np.intp]:
    """Row numbers from 0 of any index that scikit-learn takes: integers (also negative), or a mask."""
    index = np.asarray(index)
    if index.ndim != 1:
        raise IndexError(f"A split has indices of {index.ndim} dimensions; one is needed.")
    if index.dtype == bool:
        if index.size != n_samples:
            raise IndexError(f"A mask of a split has {index.size} entries; X has {n_samples} rows.")
        return np.flatnonzero(index)
    if index.dtype.kind not in "iu" and index.size:
        raise IndexError(f"A split has indices of dtype {index.dtype}; integers or a mask are needed.")
    if not index.size:
        return np.empty(0, dtype=np.intp)
    if index.min() < -n_samples or index.max() >= n_samples:
        raise IndexError(f"A split has indices from {index.min()} to {index.max()}; X has {n_samples} rows.")
    index = index.astype(np.intp, copy=False)  # a small type may not hold n_samples
    return np.where(index < 0, index + n_samples, index)


def contiguous(rows: NDArray[np.intp]) -> Rows:
    """The `rows` as a slice if they are consecutive, in order."""
    if rows.size and rows[-1] - rows[0] + 1 == rows.size and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
