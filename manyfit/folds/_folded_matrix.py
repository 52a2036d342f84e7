"""Folded data: X, y, weights and the splits, with summaries computed on first use, once a search."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import safe_indexing
from manyfit.arrays import Beside, label_transfers, numpy_dtype, to_host
from manyfit.exceptions import Unsupported
from manyfit.folds.moments._moments import AtomMoments, AtomRanges, Moments, moments_of_rows
from manyfit.folds.moments._transformed import TransformedMoments
from manyfit.folds.rows._index import take_rows
from manyfit.folds.rows._inputs import is_xp_array
from manyfit.folds.splits._splits import Splits

Array = NDArray[Any]

# Columns of values, weights or targets beyond this, or under its inverse, are not squared: quotients and
# products of two of them, squared, would leave the range of float64 or lose digits at its lower end.
MAX_SIZE = 1e70


@dataclass(frozen=True)
class Weights:
    """Sample weights, of the fit and of the scores: two sets, since not every scorer is given any.

    Attributes
    ----------
    fit : ndarray of float64 of shape (n,) or None
        Of all rows of X, as `as_weights` gives them.
    score : ndarray of float64 of shape (n,) or None
        The same for the scores. Where it is the same object as `fit`, moments are summed once for both.
    """

    fit: Array | None = None
    score: Array | None = None


class Fold(Protocol):
    """The rows of one split, exactly those and in the order that the splitter gave.

    Attributes
    ----------
    X_train, X_test : ndarray of shape (n_train, p), (n_test, p)
    y_train, y_test : ndarray of shape (n_train[, q]), (n_test[, q])
    fit_weight : ndarray of shape (n_train,) or None
    X_train_score : ndarray of shape (n_train, p)
        What a training score reads. Differs from `X_train` only behind a transformer whose
        ``fit_transform`` is not its ``fit().transform()``.
    """

    @property
    def X_train(self) -> Array:
        """Training rows of X, in the dtype of X; each reading may copy them."""

    @property
    def y_train(self) -> Array:
        """Targets of the training rows, with as many dimensions as y."""

    @property
    def X_test(self) -> Array:
        """Test rows of X, in the dtype of X; each reading may copy them."""

    @property
    def y_test(self) -> Array:
        """Targets of the test rows, with as many dimensions as y."""

    @property
    def fit_weight(self) -> Array | None:
        """Weights that the last step is fitted with; None if the user gave none."""

    @property
    def X_train_score(self) -> Array:
        """Training rows of X as ``transform`` gives them, which training scores read."""

    def rows(self, role: str) -> Array:
        """Rows of X that the scores of a role read: `X_test` or `X_train_score`."""

    def targets(self, role: str) -> Array:
        """Targets of these rows: `y_test` or `y_train`."""

    def score_weight(self, role: str) -> Array | None:
        """Weights of the scores of the ``"train"`` or ``"test"`` rows."""

    def scored_targets(self, role: str) -> Any:
        """Targets of the ``"train"`` or ``"test"`` rows as the user gave them, for the user's own scorers."""


@dataclass(frozen=True)
class FoldArrays:
    """A `Fold` given as arrays, all on the host.

    Attributes
    ----------
    X_train : ndarray of shape (n_train, p)
        float32, float64, integer or bool, as `as_matrix` gives it.
    y_train : ndarray of shape (n_train,) or (n_train, q)
        Numbers or labels.
    X_test : ndarray of shape (n_test, p)
        As `X_train`.
    y_test : ndarray of shape (n_test,) or (n_test, q)
        As `y_train`.
    fit_weight : ndarray of shape (n_train,) or None
        Weights that the last step is fitted with.
    X_train_score : ndarray of shape (n_train, p)
        What a training score reads; `X_train` itself where that is the same.
    given_train : array-like
        Targets of the training rows as the user gave them, for the scorers.
    given_test : array-like
        The same of the test rows.
    score_weights : mapping of str to ndarray, or None
        Weights of the scores, by role.
    """

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    fit_weight: Array | None
    X_train_score: Array
    given_train: Any
    given_test: Any
    score_weights: Mapping[str, Array] | None = None

    def rows(self, role: str) -> Array:
        """Rows of X that the scores of a role read."""
        return self.X_test if role == "test" else self.X_train_score

    def targets(self, role: str) -> Array:
        """Targets of the rows of a role."""
        return self.y_test if role == "test" else self.y_train

    def score_weight(self, role: str) -> Array | None:
        """Weights of the scores of a role, or None."""
        return None if self.score_weights is None else self.score_weights[role]

    def scored_targets(self, role: str) -> Any:
        """Targets of the rows of a role, as they were given."""
        return self.given_test if role == "test" else self.given_train


class FoldedData(Protocol):
    """What a family may ask of the data. Rows and moments of split ``i``, ``0 <= i < n_splits``."""

    @property
    def n_splits(self) -> int:
        """Number of splits."""

    def fold(self, i: int) -> Fold:
        """The rows of split `i`."""

    def view(self, i: int) -> TransformedMoments:
        """Training moments of split `i`."""

    def scoring_moments(self, i: int, role: str) -> Moments:
        """Moments of the ``"train"`` or ``"test"`` rows of split `i`, with the weights of the scores."""


class FoldedMatrix:
    """Folded data over one matrix: every split is a merge of the same atoms.

    Parameters
    ----------
    X : array of shape (n, p)
        float32, float64, integer or bool; on the host or on a device; read, never copied as a whole.
    y : array of shape (n,) or (n, q)
        Numbers, on the host or where X lies.
    splits : Splits
        The splits.
    weights : Weights
        Weights of all n rows.
    given : array-like, optional
        y as the user gave it, for scorers of the user's own; `y` itself if not given.
    targets : ndarray of shape (n,) or (n, q), optional
        Numbers that moments are summed of beside X, where y is labels; `y` itself if not given.
    home : callable, optional
        Brings y to the host.

    Attributes
    ----------
    passes : float
        Passes over X made so far to sum moments.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        splits: Splits,
        weights: Weights | None = None,
        given: Any = None,
        targets: Array | None = None,
        home: Callable[[Any], Any] = to_host,
    ) -> None:
        self._home = home
        self.X, self.splits = X, splits
        self._y, self._given, self._beside_X = y, y if given is None else given, Beside(X)
        self.weights = Weights() if weights is None else weights
        self.passes = 0.0
        self._Y = _as_columns(y if targets is None else targets)
        self._atoms: dict[tuple[int, int], AtomMoments] = {}
        self._ranges: dict[int, AtomRanges] = {}
        self._group_of = {i: g for g, group in enumerate(splits.atom_groups) for i in group.splits}

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return self.splits.n_splits

    @cached_property
    def y(self) -> Array:
        """Targets on the host; of a device they are brought once."""
        with label_transfers("y"):
            return np.asarray(self._home(self._y))

    @property
    def given(self) -> Any:
        """Targets as the user gave them, for scorers of the user's own; those of a device on the host."""
        return self.y if is_xp_array(self._given) else self._given

    @property
    def n_targets(self) -> int:
        """Columns of y; 1 where it is one-dimensional."""
        return int(self._Y.shape[1])

    @property
    def moment_bytes(self) -> int:
        """Host memory that the moments of all atoms of one group take at most."""
        d = self.X.shape[1] + self._Y.shape[1]
        sets = len({id(None), id(self.weights.fit), id(self.weights.score)})
        return max(len(group.rows) for group in self.splits.atom_groups) * d * d * 8 * sets

    def fold(self, i: int) -> Fold:
        """The rows of split `i`, copied when they are read."""
        return _SplitFold(self, i)

    def view(self, i: int) -> TransformedMoments:
        """Training moments of split `i`."""
        plain = weighted = self._merged(i, "train", None)
        if self.weights.fit is not None:
            weighted = self._merged(i, "train", self.weights.fit)
        return TransformedMoments.root(
            plain, weighted, lambda columns: self._constant(i, columns), self.X, self._y
        )

    def scoring_moments(self, i: int, role: str) -> Moments:
        """Moments of the training or test rows of split `i`, with the weights of the scores."""
        return self._merged(i, role, self.weights.score)

    def _merged(self, i: int, role: str, weights: Array | None) -> Moments:
        group = self.splits.atom_groups[self._group_of[i]]
        counts = group.train if role == "train" else group.test
        merged = self._atoms_of(i, weights).merged(counts[i - group.splits.start])
        return _checked(merged, i, role, numpy_dtype(self.X))

    def _atoms_of(self, i: int, weights: Array | None) -> AtomMoments:
        g = self._group_of[i]
        group = self.splits.atom_groups[g]
        key = (g, id(weights))
        if key not in self._atoms:
            # Groups come one after the other, so atoms of earlier ones are no longer needed.
            self._atoms = {k: v for k, v in self._atoms.items() if k[0] == g}
            Y, own = self._beside_X(self._Y, "y"), self._beside_X(weights, "weights")
            self._atoms[key] = AtomMoments(self.X, Y, group, own)
            self.passes += self._atoms[key].rows_read / max(self.X.shape[0], 1)
        return self._atoms[key]

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
        return take_rows(self._data.X, self._train)

    @property
    def X_train_score(self) -> Array:
        return take_rows(self._data.X, self._train)

    @property
    def y_train(self) -> Array:
        return take_rows(self._data.y, self._train)

    @property
    def X_test(self) -> Array:
        return take_rows(self._data.X, self._test)

    @property
    def y_test(self) -> Array:
        return take_rows(self._data.y, self._test)

    @property
    def fit_weight(self) -> Array | None:
        weights = self._data.weights.fit
        return None if weights is None else weights[self._train]

    def _index(self, role: str) -> Any:
        return self._test if role == "test" else self._train

    def rows(self, role: str) -> Array:
        return take_rows(self._data.X, self._index(role))

    def targets(self, role: str) -> Array:
        return take_rows(self._data.y, self._index(role))

    def score_weight(self, role: str) -> Array | None:
        weights = self._data.weights.score
        return None if weights is None else weights[self._index(role)]

    def scored_targets(self, role: str) -> Any:
        return safe_indexing(self._data.given, self._index(role))


class SingleFold:
    """Folded data of a single split whose rows are given, such as the output of shared steps.

    Parameters
    ----------
    fold : Fold
        The rows.
    """

    n_splits = 1

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._view: TransformedMoments | None = None
        self._scoring: dict[str, Moments] = {}
        self._ranges = AtomRanges(fold.X_train, [slice(0, fold.X_train.shape[0])])

    @property
    def X(self) -> Array:
        """The training rows, which tell where all rows lie."""
        return self._fold.X_train

    @property
    def moment_bytes(self) -> int:
        """Host memory that the moments of the training and the test rows take."""
        d = self._fold.X_train.shape[1] + self._fold.y_train[0].size
        return 2 * d * d * 8

    def fold(self, i: int) -> Fold:
        """The rows."""
        return self._fold

    def view(self, i: int) -> TransformedMoments:
        """Training moments; summed once."""
        if self._view is None:
            self._view = self._root()
        return self._view

    @cached_property
    def fitted_moments(self) -> Moments:
        """Moments of the training rows with the weights of the fit; summed once."""
        return _moments(self._fold.X_train, self._fold.y_train, self._fold.fit_weight)

    def _root(self) -> TransformedMoments:
        fold, plain = self._fold, self.fitted_moments
        if fold.fit_weight is not None:
            plain = _moments(fold.X_train, fold.y_train, None)
        ranges = self._ranges  # not `self`, which keeps the view: X would wait for the garbage collector

        def constant(columns: Array) -> Array:
            return ranges.constant(columns, np.zeros(1, dtype=np.intp))

        return TransformedMoments.root(plain, self.fitted_moments, constant, fold.X_train, fold.y_train)

    def scoring_moments(self, i: int, role: str) -> Moments:
        """Moments of the training or test rows, with the weights of the scores; summed once a role."""
        if role not in self._scoring:
            self._scoring[role] = self._summed(role)
        return self._scoring[role]

    def _summed(self, role: str) -> Moments:
        fold = self._fold
        return _moments(fold.rows(role), fold.targets(role), fold.score_weight(role), role)


def _moments(X: Array, y: Array, weights: Array | None, role: str = "train") -> Moments:
    moments = moments_of_rows(X, Beside(X)(_as_columns(y), "y"), slice(0, X.shape[0]), weights)
    return _checked(moments, 0, role, numpy_dtype(X))


def _as_columns(y: Any) -> Any:
    """Targets with two dimensions; a view."""
    return y if y.ndim == 2 else y[:, None]


def _checked(moments: Moments, i: int, role: str, dtype: np.dtype[Any]) -> Moments:
    if not np.isfinite(moments.scatter.sum()) or not moments.weight > 0:
        raise Unsupported(f"the {role} rows of split {i} have no finite moments (NaN, infinity or no weight)")
    sizes = np.maximum(np.sqrt(np.diagonal(moments.scatter) / moments.weight), np.abs(moments.mean))
    # scikit-learn squares and sums in the dtype of X.
    limit = min(MAX_SIZE, float(np.sqrt(1e-3 * np.finfo(dtype if dtype.kind == "f" else np.float64).max)))
    low, high = 1.0 / limit, limit / np.sqrt(moments.rows)
    if ((sizes > high) | ((sizes < low) & (sizes > 0.0))).any() or not low <= moments.weight <= limit:
        raise Unsupported(f"the {role} rows of split {i} are too large or too small to be squared")
    return moments
