"""Folded data of a single split whose rows are given as arrays."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from manyfit.folds._fold import Fold
from manyfit.folds.moments._classes import ClassAtoms, ClassMoments, Labels
from manyfit.folds.moments._moments import AtomRanges, Moments, require_squares
from manyfit.folds.moments._transformed import TransformedMoments
from manyfit.folds.rows._registry import wrap_rows
from manyfit.folds.rows._source import RowSource
from manyfit.folds.rows._targets import class_indicators
from manyfit.folds.splits._atoms import Array, AtomGroup, Rows


class SingleFold:
    """Folded data of one `Fold`, such as the output of shared steps; moments are summed once.

    `classes` are those of the training rows if moments are of indicators of classes; `function` is applied to
    the targets whose moments are summed.
    """

    n_splits = 1

    def __init__(
        self,
        fold: Fold,
        classes: Array | None = None,
        function: Callable[[Any], Any] | None = None,
    ) -> None:
        self._fold, self.classes, self._function = fold, classes, function
        self._scoring: dict[str, Moments] = {}

    @cached_property
    def X(self) -> RowSource:
        """The training rows."""
        return wrap_rows(self._fold.X_train)

    @property
    def n_targets(self) -> int:
        """Columns of the numbers that moments are of."""
        return int(self._numbers(self._fold.y_train[:1]).shape[1])

    @property
    def moment_bytes(self) -> int:
        """Host memory that the moments of the training and the test rows take."""
        d = self.X.shape[1] + self.n_targets
        return 2 * d * d * 8

    def fold(self, i: int) -> Fold:
        """The rows."""
        return self._fold

    def fitted_targets(self, i: int) -> Array:
        """Targets of the training rows."""
        return self._fold.y_train

    def view(self, i: int) -> TransformedMoments:
        """Training moments."""
        return self._root

    @cached_property
    def fitted_moments(self) -> Moments:
        """Moments of the training rows with the weights of the fit."""
        Y = self._numbers(self._fold.y_train)
        return _moments(self.X, Y, self._fold.fit_weight, "train")

    def _numbers(self, y: Any) -> Any:
        if self.classes is not None:
            return class_indicators(y, self.classes)
        return as_columns(y if self._function is None else self._function(y))

    @cached_property
    def _root(self) -> TransformedMoments:
        fold, plain = self._fold, self.fitted_moments
        if fold.fit_weight is not None:
            plain = _moments(self.X, self._numbers(fold.y_train), None, "train")
        # Not of `self`, which keeps the view: X would wait for the garbage collector.
        constant = partial(AtomRanges(self.X, [slice(0, self.X.shape[0])]).constant, used=[0])
        single_target = fold.y_train.ndim == 1
        return TransformedMoments.root(plain, self.fitted_moments, constant, self.X, single_target)

    def scoring_moments(self, i: int, role: str) -> Moments:
        """Moments of the ``"train"`` or ``"test"`` rows, with the weights of the scores."""
        if role not in self._scoring:
            fold = self._fold
            Y = self._numbers(fold.targets(role))
            self._scoring[role] = _moments(wrap_rows(fold.rows(role)), Y, fold.score_weight(role), role)
        return self._scoring[role]

    def class_moments(self, i: int) -> ClassMoments:
        """Moments of the classes of the training rows, without weights."""
        every = AtomGroup(range(1), [slice(0, self.X.shape[0])], np.ones((1, 1)), np.zeros((1, 1)))
        return ClassAtoms(self.X, Labels.of(self._fold.y_train), every).merged_moments(0)


def _moments(X: RowSource, Y: Any, weights: Any, role: str) -> Moments:
    moments = moments_of_rows(X, X.send(Y, "y"), slice(0, X.shape[0]), weights)
    return require_squares(moments, 0, role, X.dtype)


def moments_of_rows(X: Any, Y: Any, rows: Rows, weights: Any = None) -> Moments:
    """Moments of ``[X, Y]`` over some rows, by one thread; Y and weights lie where X does."""
    [(moments, _)] = wrap_rows(X).moments(Y, [rows], weights, in_pieces=False)
    return moments


def as_columns(y: Any) -> Any:
    """Targets with two dimensions; a view."""
    return y if y.ndim == 2 else y[:, None]
