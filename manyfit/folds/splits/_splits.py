"""The splits of one search, frozen and kept small."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, LeaveOneOut

from manyfit.folds.splits._atoms import AtomGroup, Rows, atoms_of_partition, atoms_of_splits
from manyfit.folds.splits._splitter_arguments import host_copy, splitter_arguments
from manyfit.introspection.class_names import sklearn_class_of

Split = tuple[Any, Any]


# The dtype of the numbers of splits, while it holds them.
FEW_LABELS = np.int16


@dataclass(frozen=True)
class TestSets:
    """Test sets that divide the rows: those of split i are ``order[ends[i - 1]:ends[i]]``.

    Each split trains on all other rows. `order` is None for the rows in order.
    """

    order: NDArray[np.intp] | None
    ends: NDArray[np.intp]

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of rows of each."""
        return np.diff(self.ends, prepend=0)

    def rows(self, splits: NDArray[np.intp]) -> Rows:
        """The rows of the test sets of some splits, one after the other."""
        starts, ends = (self.ends - self.sizes)[splits], self.ends[splits]
        if self.order is None and np.array_equal(starts[1:], ends[:-1]):
            return slice(int(starts[0]), int(ends[-1]))
        place = np.concatenate([np.arange(*pair) for pair in zip(starts, ends, strict=True)])
        return place if self.order is None else self.order[place]


@dataclass(frozen=True)
class _Ranges:
    """Consecutive test folds, of a KFold without shuffling or a LeaveOneOut: only their ends are kept."""

    ends: NDArray[np.intp]

    @property
    def n_splits(self) -> int:
        return len(self.ends)

    def _range(self, i: int) -> tuple[int, int]:
        return (int(self.ends[i - 1]) if i else 0), int(self.ends[i])

    def indices(self, i: int) -> Split:
        start, stop = self._range(i)
        n = int(self.ends[-1])
        return np.concatenate([np.arange(start), np.arange(stop, n)]), np.arange(start, stop)

    def atom_groups(self) -> list[AtomGroup]:
        return [atoms_of_partition([slice(*self._range(i)) for i in range(self.n_splits)])]

    def test_sets(self) -> TestSets | None:
        return TestSets(None, self.ends)


@dataclass(frozen=True)
class _Labels:
    """A partition: row r is tested in split ``labels[r]`` and trains in all others, in sorted order."""

    labels: NDArray[np.integer]
    n_splits: int

    def indices(self, i: int) -> Split:
        test = self.labels == i
        return np.flatnonzero(~test), np.flatnonzero(test)

    def atom_groups(self) -> list[AtomGroup]:
        return [atoms_of_partition([self.indices(i)[1] for i in range(self.n_splits)])]

    def test_sets(self) -> TestSets | None:
        ends = np.cumsum(np.bincount(self.labels, minlength=self.n_splits))
        return TestSets(np.argsort(self.labels, kind="stable"), ends)


@dataclass(frozen=True)
class _Whole:
    """Any other splits, kept exactly as the splitter gave them; in a dict, some of all, for a worker."""

    splits: Sequence[Split] | dict[int, Split]
    n_splits: int
    n_samples: int

    def indices(self, i: int) -> Split:
        return self.splits[i]

    def atom_groups(self) -> list[AtomGroup]:
        if isinstance(self.splits, dict):
            raise TypeError("Atoms are of all splits, and these are some of them.")
        return atoms_of_splits(self.splits, self.n_samples)

    def test_sets(self) -> TestSets | None:
        return None


class Splits:
    """The (train, test) pairs of a search, drawn once and the same for every reader; see `draw`, `given`.

    A KFold is kept as its boundaries and any partition into sorted folds as one label a row: the index arrays
    of all splits, for KFold ``n_splits`` times as long as X, are never in memory together. Everything else is
    kept as the splitter gave it: index arrays in their order, boolean masks, negative and repeated indices.
    """

    def __init__(self, store: _Ranges | _Labels | _Whole, n_samples: int) -> None:
        self._store = store
        self.n_samples = n_samples

    @classmethod
    def draw(
        cls,
        cv: Any,
        X: Any,
        y: Any,
        n_samples: int,
        params: dict[str, Any],
        copy_to_host: Callable[[Any], Any] = host_copy,
    ) -> "Splits":
        """Draw the splits of a splitter, once; `params` are arguments of ``cv.split``, such as ``groups``.

        scikit-learn's splitters get host copies of the arrays on a device that they read; `copy_to_host`
        copies them.
        """
        given = any(value is not None for value in params.values())  # which KFold warns about
        if sklearn_class_of(type(cv)) is KFold and not cv.shuffle and cv.n_splits <= n_samples and not given:
            sizes = np.full(cv.n_splits, n_samples // cv.n_splits)
            sizes[: n_samples % cv.n_splits] += 1
            return cls(_Ranges(np.cumsum(sizes)), n_samples)
        if sklearn_class_of(type(cv)) is LeaveOneOut and n_samples > 1 and not given:
            return cls(_Ranges(np.arange(1, n_samples + 1)), n_samples)
        X, y, params = splitter_arguments(cv, X, y, params, copy_to_host)
        return cls.given(cv.split(X, y, **params), n_samples)

    @classmethod
    def given(cls, splits: Any, n_samples: int) -> "Splits":
        """Keep the splits of an iterable, which is read once."""
        labels = np.full(n_samples, -1, dtype=FEW_LABELS)
        drawn: list[Split] = []
        stream: Iterator[Split] = iter(splits)
        n_partition = 0
        for train, test in stream:
            if n_partition > np.iinfo(labels.dtype).max:
                labels = labels.astype(np.int64)
            if n_partition == len(drawn) and _joins_partition(train, test, labels, n_partition):
                # Only the label is kept; the pair is written out again if the partition breaks.
                drawn.append(_SPENT)
                n_partition += 1
            else:
                drawn.append((train, test))
        if drawn and n_partition == len(drawn) and np.all(labels >= 0):
            return cls(_Labels(labels, n_partition), n_samples)
        partition = _Labels(labels, n_partition)
        drawn[:n_partition] = [partition.indices(i) for i in range(n_partition)]
        return cls(_Whole(drawn, len(drawn), n_samples), n_samples)

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return self._store.n_splits

    def indices(self, i: int) -> Split:
        """Train and test indices of split `i`, as the splitter gave them."""
        return self._store.indices(i)

    def only(self, chosen: Collection[int]) -> "Splits":
        """The same, of which another process reads the chosen ones only."""
        some = {i: self.indices(i) for i in chosen}
        return Splits(_Whole(some, self.n_splits, self.n_samples), self.n_samples)

    def __iter__(self) -> Iterator[Split]:
        return (self.indices(i) for i in range(self.n_splits))

    @property
    def chosen(self) -> tuple[int, ...]:
        """The splits whose indices are here: all, but for what `only` gives."""
        splits = self._store.splits if isinstance(self._store, _Whole) else None
        return tuple(splits) if isinstance(splits, dict) else tuple(range(self.n_splits))

    @property
    def content(self) -> tuple[Any, ...]:
        """A key of these splits, as small as they are kept: for KFold the ends of its folds."""
        store = self._store
        if isinstance(store, _Ranges):
            return "ranges", self.n_samples, store.ends
        if isinstance(store, _Labels):
            return "labels", self.n_samples, store.n_splits, store.labels
        return "indices", self.n_samples, list(self)

    @cached_property
    def train_sizes(self) -> frozenset[int]:
        """The sizes that training sets have."""
        if isinstance(self._store, _Ranges):
            return frozenset((self.n_samples - np.diff(self._store.ends, prepend=0)).tolist())
        trains = (np.asarray(train) for train, _ in self)
        return frozenset(int(t.sum()) if t.dtype == bool else int(t.size) for t in trains)

    @cached_property
    def atom_groups(self) -> list[AtomGroup]:
        """Rows grouped by the splits that they train and test in (see `AtomGroup`)."""
        return self._store.atom_groups()

    @cached_property
    def test_sets(self) -> TestSets | None:
        """The test sets if they divide the rows and each split trains on all others in order; else None."""
        return self._store.test_sets()

    @property
    def n_atom_groups(self) -> int:
        """The number of groups of atoms."""
        return 1 if self.test_sets is not None else len(self.atom_groups)

    @property
    def most_atoms(self) -> int:
        """The most atoms of a group."""
        if self.test_sets is not None:
            return self.n_splits
        return max(len(group.rows) for group in self.atom_groups)


_SPENT: Split = (None, None)


def _joins_partition(train: Any, test: Any, labels: NDArray[np.integer], i: int) -> bool:
    """Whether split `i` tests sorted rows that no earlier split tested and trains on the others in order.

    Labels the rows of `test` if so.
    """
    if not (_sorted_rows(train, labels.size) and _sorted_rows(test, labels.size)):
        return False
    if len(train) + len(test) != labels.size or np.any(labels[test] >= 0):
        return False
    # Both are in order: the row at position j of `test` would be at `place` of `train`, after all before it.
    place = test - np.arange(len(test))
    before, after = train[np.maximum(place - 1, 0)], train[np.minimum(place, len(train) - 1)]
    if np.any((place > 0) & (before >= test)) or np.any((place < len(train)) & (after <= test)):
        return False
    labels[test] = i
    return True


def _sorted_rows(index: Any, n_samples: int) -> bool:
    """Whether an index is what `np.flatnonzero` gives: signed integers, strictly increasing, in range."""
    if not (isinstance(index, np.ndarray) and index.dtype == np.intp and index.ndim == 1 and index.size):
        return False
    return bool(index[0] >= 0 and index[-1] < n_samples and np.all(index[1:] > index[:-1]))
