"""Protocols of folded data: the rows and the moments of each split."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from manyfit.folds.moments._moments import Moments
from manyfit.folds.moments._transformed import TransformedMoments
from manyfit.folds.splits._atoms import Array


class Fold(Protocol):
    """The rows of one split, exactly those and in the order that the splitter gave."""

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
        """Sample weights for the fit of the last step, (n_train,), or None."""

    @property
    def X_train_score(self) -> Array:
        """Training rows of X as ``transform`` gives them, for training scores."""

    @property
    def names(self) -> tuple[Any, ...] | None:
        """The names of the columns that scikit-learn's own fits see, as those of a frame; None if none."""

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
    """A `Fold` of arrays; `given_train` and `given_test` are the targets as the user gave them."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    fit_weight: Array | None
    X_train_score: Array
    given_train: Any
    given_test: Any
    score_weights: Mapping[str, Array] | None = None
    names: tuple[Any, ...] | None = None

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
    """The data as families read them: rows and moments of split ``i``, ``0 <= i < n_splits``."""

    @property
    def n_splits(self) -> int:
        """Number of splits."""

    @property
    def classes(self) -> Array | None:
        """Classes whose indicators the moments are of, in the order of the targets; None for numbers."""

    def fold(self, i: int) -> Fold:
        """The rows of split `i`."""

    def fitted_targets(self, i: int) -> Array:
        """Targets of the training rows of split `i`, with as many dimensions as y; no rows of X are read."""

    def view(self, i: int) -> TransformedMoments:
        """Training moments of split `i`."""

    def scoring_moments(self, i: int, role: str) -> Moments:
        """Moments of the ``"train"`` or ``"test"`` rows of split `i`, with the weights of the scores."""
