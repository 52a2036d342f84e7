"""Folded data: X, y, weights and the splits, with moments that are summed on first use, once a search."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from manyfit._compat import safe_indexing
from manyfit.arrays import is_xp_array, label_transfers, to_host
from manyfit.exceptions import Unsupported
from manyfit.folds._fold import Fold
from manyfit.folds._pass_data import trained_classes
from manyfit.folds._single_fold import as_columns
from manyfit.folds.encodings._columns import EncodedFold, FoldColumns
from manyfit.folds.encodings._encoding import Encoding
from manyfit.folds.moments._classes import Labels
from manyfit.folds.moments._moments import AtomMoments, AtomRanges, Moments, merged_moments, require_squares
from manyfit.folds.moments._transformed import TransformedMoments
from manyfit.folds.rows._host import HostRows
from manyfit.folds.rows._registry import wrap_rows
from manyfit.folds.rows._some_rows import SomeRows
from manyfit.folds.rows.chunks._sums import ChunkSums
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import take_rows, view_rows
from manyfit.folds.splits._splits import Splits

# Parts in which all rows are summed where rows are left out of their fit, to bound what a test set may hold.
WHOLE_PARTS = 4
# Matrices of the size of their moments that such a fit needs: those of the parts, inverses, and some copies.
WHOLE_MATRICES = WHOLE_PARTS + 8


@dataclass(frozen=True)
class Weights:
    """Sample weights of all rows, float64 on the host, of fits and of scores: not every scorer takes weights.

    If both are one object, moments are summed once for both.
    """

    fit: Array | None = None
    score: Array | None = None


class FoldedMatrix:
    """Folded data over the rows of one X: the moments of every split are merged from the same atoms.

    `y` holds numbers or labels, on the host or where X lies; `given` is y as the user gave it, for scorers of
    the user's own; `targets` are the numbers for moments if y holds labels, of which `classes` are the
    different ones. `copy_to_host` copies y to the host. `passes` counts the passes over X that summed
    moments.
    """

    def __init__(
        self,
        X: Any,
        y: Array,
        splits: Splits,
        weights: Weights | None = None,
        given: Any = None,
        targets: Array | None = None,
        copy_to_host: Callable[[Any], Any] = to_host,
        classes: Array | None = None,
    ) -> None:
        self._copy_to_host, self.classes = copy_to_host, classes
        self.X, self.splits = wrap_rows(X), splits
        self._y, self._given = y, y if given is None else given
        self.weights = Weights() if weights is None else weights
        self.passes = 0.0
        self._Y = as_columns(y if targets is None else targets)
        self._sent: dict[int, Any] = {}
        self._atoms: dict[tuple[int, int], AtomMoments] = {}
        self._ranges: dict[int, AtomRanges] = {}
        self._some_rows: deque[tuple[Array, SomeRows]] = deque(maxlen=2)
        _ = splits.n_atom_groups  # raises IndexError for a bad index

    def with_rows(self, X: Any) -> "FoldedMatrix":
        """The same y, weights and splits with other rows X."""
        return FoldedMatrix(
            X, self._y, self.splits, self.weights, self._given, self._Y, self._copy_to_host, self.classes
        )

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return self.splits.n_splits

    @cached_property
    def _group_of(self) -> dict[int, int]:
        return {i: g for g, group in enumerate(self.splits.atom_groups) for i in group.splits}

    @cached_property
    def y(self) -> Array:
        """Targets on the host; those of a device are copied once."""
        with label_transfers("y"):
            return np.asarray(self._copy_to_host(self._y))

    @property
    def given(self) -> Any:
        """Targets as the user gave them, for the user's own scorers; on the host if they lie on a device."""
        return self.y if is_xp_array(self._given) else self._given

    @property
    def n_targets(self) -> int:
        """Columns of y; 1 where it is one-dimensional."""
        return int(self._Y.shape[1])

    @property
    def single_target(self) -> bool:
        """Whether y is one-dimensional."""
        return bool(self._y.ndim == 1)

    @property
    def moment_bytes(self) -> int:
        """Host memory that the moments of all atoms of one group take at most."""
        d = self.X.shape[1] + self._Y.shape[1]
        sets = len({id(None), id(self.weights.fit), id(self.weights.score)})
        most = self.splits.most_atoms
        return (most + 5 * math.isqrt(most)) * d * d * 8 * sets

    @property
    def whole_moment_bytes(self) -> int:
        """Host memory that a fit of all rows takes out of which rows are left."""
        d = self.X.shape[1] + self._Y.shape[1]
        return WHOLE_MATRICES * d * d * 8

    @cached_property
    def _trained_classes(self) -> tuple[Labels, Array]:
        """The labels of y, and which of them the training part of each split holds."""
        found, sets = Labels.of(self.y), self.splits.test_sets
        k, codes = len(found.labels), found.codes
        if sets is None:
            return found, trained_classes(codes, k, self.splits.atom_groups)
        own = np.repeat(np.arange(self.n_splits), sets.sizes) * k
        own += codes if sets.order is None else codes[sets.order]
        tested = np.bincount(own, minlength=self.n_splits * k).reshape(-1, k)
        return found, tested.sum(axis=0) > tested

    def splits_by_classes(self) -> list[list[int]]:
        """The splits, those with training rows of the same classes together; for a y of labels."""
        held = self._trained_classes[1]
        _, number = np.unique(held, axis=0, return_inverse=True)
        return [np.flatnonzero(number == one).tolist() for one in np.unique(number)]

    def trained_labels(self, splits: Sequence[int]) -> Array:
        """y, in which labels that none of the splits trains on became another one."""
        found, held = self._trained_classes
        kept = np.asarray(held[splits].any(axis=0))
        if kept.all() or not kept.any():
            return self.y
        return np.where(kept[found.codes], self.y, found.labels[np.argmax(kept)])

    def fold(self, i: int) -> Fold:
        """The rows of split `i`, copied when they are read."""
        return _SplitFold(self, i)

    def fitted_targets(self, i: int) -> Array:
        """Targets of the training rows of split `i`."""
        return self.fold(i).y_train

    def view(self, i: int) -> TransformedMoments:
        """Training moments of split `i`."""
        plain = weighted = self._merged(i, "train", None)
        if self.weights.fit is not None:
            weighted = self._merged(i, "train", self.weights.fit)
        constant = partial(self._constant, i)
        found = TransformedMoments.root(plain, weighted, constant, self.X, self.single_target)
        kept = self._targets_of(i)
        return found if kept is None else found.of_targets(kept)

    def _targets_of(self, i: int) -> Array | None:
        """The indicators of the classes that split `i` trains on; None if these are all."""
        if self.classes is None or self._trained_classes[1][i].all():
            return None
        kept = np.flatnonzero(self._trained_classes[1][i])
        if len(kept) < 2:
            raise Unsupported("the training rows have one class")
        return kept[1:] if len(kept) == 2 else kept

    def classes_of(self, i: int) -> Array | None:
        """Of `classes`, those that split `i` trains on."""
        return None if self.classes is None else self.classes[self._trained_classes[1][i]]

    @property
    def trains_on_all_classes(self) -> bool:
        """Whether the training rows of each split have all classes of y."""
        return bool(self._trained_classes[1].all())

    @property
    def divides_rows(self) -> bool:
        """Whether each split tests rows of its own and trains on all others, in host memory."""
        plain = self.X.dtype != np.float32 and isinstance(self.X, HostRows) and not self.X.nnz
        return plain and self.splits.test_sets is not None

    @cached_property
    def whole_view(self) -> TransformedMoments:
        """Moments of all rows, as if a split trained on them all."""
        return self._view_of([slice(0, self.X.shape[0])])[0]

    @cached_property
    def divided_view(self) -> tuple[TransformedMoments, list[Moments]]:
        """The same, and the moments for fits of some parts of the rows; a part has whole test sets."""
        sets = self.splits.test_sets
        assert sets is not None
        parts = np.array_split(np.arange(self.n_splits), min(self.n_splits, WHOLE_PARTS))
        rows = [sets.rows(part) for part in parts]
        return self._view_of([one if isinstance(one, slice) else np.sort(one) for one in rows])

    def _view_of(self, parts: list[Rows]) -> tuple[TransformedMoments, list[Moments]]:
        """The moments of all rows, in parts, and of each part."""
        own = self._moments_of(parts, self.weights.fit)
        weighted = plain = merged_moments(own)
        if self.weights.fit is not None:
            plain = merged_moments(self._moments_of(parts, None))
        for one in (plain, weighted):
            require_squares(one, 0, "training", self.X.dtype)
        constant = partial(AtomRanges(self.X, [slice(0, self.X.shape[0])]).constant, used=[0])
        return TransformedMoments.root(plain, weighted, constant, self.X, self.single_target), own

    def _moments_of(self, parts: Sequence[Rows], weights: Array | None) -> list[Moments]:
        """Moments of parts of the rows, in a pass of their own."""
        Y, own = self._send_once(self._Y, "y"), self._send_once(weights, "weights")
        summed = self.X.moments(Y, parts, own)
        self.passes += sum(read for _, read in summed) / max(self.X.shape[0], 1)
        return [moments for moments, _ in summed]

    def test_blocks(self, most: Callable[[int], int]) -> Iterator[tuple[Array, Array, Array, Array | None]]:
        """The splits of a block, their test rows of X, (k, m, p), and y, (k, m, q), and weights, (k, m).

        All test sets of a block have one size m; ``most(m)`` is the number of splits of a block at most.
        """
        sets = self.splits.test_sets
        assert sets is not None
        for m in map(int, np.unique(sets.sizes)):
            of_size = np.flatnonzero(sets.sizes == m)
            for start in range(0, len(of_size), max(1, most(m))):
                splits = of_size[start : start + max(1, most(m))]
                rows = sets.rows(splits)
                Y = np.asarray(self._Y[rows], dtype=np.float64).reshape(len(splits), m, -1)
                weights = self.weights.fit
                own = None if weights is None else np.asarray(weights[rows]).reshape(len(splits), m)
                yield splits, self.X.take(rows).reshape(len(splits), m, -1), Y, own

    def some_rows(self, X: ChunkSums, index: Array) -> SomeRows:
        """The training or test rows of a split of an X in chunks; those of the last two calls are kept."""
        found = next((one for known, one in self._some_rows if np.array_equal(known, index)), None)
        if found is None:
            found = SomeRows(X, index)
            self._some_rows.append((index, found))
        return found

    def start(self, i: int) -> FoldColumns | TransformedMoments:
        """Split `i` before any step: the columns of an encoding, else training moments."""
        if not isinstance(self.X, Encoding):
            return self.view(i)
        train, test = self.splits.indices(i)
        return FoldColumns.start(EncodedFold(self.X, train, test, lambda: self.view(i), i))

    def scoring_moments(self, i: int, role: str) -> Moments:
        """Moments of the training or test rows of split `i`, with the weights of the scores."""
        found, kept = self._merged(i, role, self.weights.score), self._targets_of(i)
        return found if kept is None else found.of_targets(self.X.shape[1], kept)

    def _merged(self, i: int, role: str, weights: Array | None) -> Moments:
        group = self.splits.atom_groups[self._group_of[i]]
        counts = group.train if role == "train" else group.test
        merged = self._atoms_of(i, weights).merged(counts[i - group.splits.start])
        return require_squares(merged, i, role, self.X.dtype)

    def _atoms_of(self, i: int, weights: Array | None) -> AtomMoments:
        g = self._group_of[i]
        group = self.splits.atom_groups[g]
        key = (g, id(weights))
        if key not in self._atoms:
            # Groups come one after the other, so atoms of earlier groups are no longer needed.
            self._atoms = {k: v for k, v in self._atoms.items() if k[0] == g}
            self._atoms[key] = AtomMoments(self._moments_of(group.rows, weights))
        return self._atoms[key]

    def _send_once(self, array: Any, label: str) -> Any:
        """Y or weights, which live as long as `self`, where X lies."""
        if id(array) not in self._sent:
            self._sent[id(array)] = self.X.send(array, label)
        return self._sent[id(array)]

    def _constant(self, i: int, columns: Array) -> Array:
        g = self._group_of[i]
        group = self.splits.atom_groups[g]
        if g not in self._ranges:
            self._ranges = {g: AtomRanges(self.X, group.rows)}
        return self._ranges[g].constant(columns, np.flatnonzero(group.train[i - group.splits.start]))


class _SplitFold:
    """A `Fold` of one matrix: rows are copied only when, and as often as, they are read."""

    def __init__(self, data: FoldedMatrix, i: int) -> None:
        self._data = data
        self._train, self._test = data.splits.indices(i)

    @property
    def X_train(self) -> Array:
        return self._data.X.take(self._train)

    @property
    def names(self) -> None:
        """See `Fold`."""
        return None

    X_train_score = X_train

    @property
    def y_train(self) -> Array:
        return take_rows(self._data.y, self._train)

    @property
    def X_test(self) -> Array:
        return self._data.X.take(self._test)

    @property
    def y_test(self) -> Array:
        return take_rows(self._data.y, self._test)

    @property
    def fit_weight(self) -> Array | None:
        weights = self._data.weights.fit
        return None if weights is None else weights[self._train]

    def _index(self, role: str) -> Any:
        return self._test if role == "test" else self._train

    def rows(self, role: str) -> Any:
        X, index = self._data.X, self._index(role)
        if isinstance(X, ChunkSums):
            return self._data.some_rows(X, index)
        return X.sample(index) if isinstance(X, Encoding) else view_rows(X, index)

    def targets(self, role: str) -> Array:
        return take_rows(self._data.y, self._index(role))

    def score_weight(self, role: str) -> Array | None:
        weights = self._data.weights.score
        return None if weights is None else weights[self._index(role)]

    def scored_targets(self, role: str) -> Any:
        return safe_indexing(self._data.given, self._index(role))
