"""Answers: what a family says of the settings on one fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from manyfit.folds import Array, Fold, Moments
from manyfit.metrics.scoring import (
    LinearPredictors,
    Residuals,
    Rounding,
    lost_to_rounding,
    residuals_from_moments,
)

Role = Literal["train", "test"]
# Why a family of iterations leaves a setting to scikit-learn.
STOPS_EARLY = "scikit-learn's solver may stop before it meets tol"


class Responses(Mapping[str, Array]):
    """Responses on the host by method name, each computed when it is first read.

    Most scorers read one of them, and probabilities may take longer than labels.

    Parameters
    ----------
    **compute : callable
        By method name: a function without arguments that gives the array, of shape (n_settings, n_rows, ...).
    """

    def __init__(self, **compute: Callable[[], Array]) -> None:
        self._compute = compute
        self._found: dict[str, Array] = {}

    def __getitem__(self, method: str) -> Array:
        if method not in self._found:
            self._found[method] = self._compute[method]()
        return self._found[method]

    def is_computed(self, method: str) -> bool:
        """Whether a response has been read before."""
        return method in self._found

    def __contains__(self, method: object) -> bool:
        return method in self._compute  # that of the base class would compute it

    def __iter__(self) -> Iterator[str]:
        return iter(self._compute)

    def __len__(self) -> int:
        return len(self._compute)


class Answers:
    """The answers of a family for one fold: a base class with defaults for all but `subset` and `respond`.

    Attributes
    ----------
    refused : mapping of int to str
        Settings (positions in the list of `fit_many`) that this fold does not share, with
        the reason; scikit-learn fits each of them.
    classes : ndarray of shape (n_classes,) or None
        For classifiers: the classes, on the host, in the order of the columns of probabilities.
    n_outputs : int
        Numbers that `respond` gives for each row and setting, for the size of blocks of predictions.
    rows_read : int
        Rows of X that iterations went over, each as often as they did.
    fits_made : int
        Fits of the estimator that the family made on this fold; plan and report count them.
    reads_moments : bool
        Whether `from_moments` gives residuals. Scores of constant targets are then left to scikit-learn.
    checks_rounding : bool
        Whether `lost_digits` has to see the residuals, also where no score is computed from them.
    varies_within_tol : bool
        Whether another optimum within ``tol`` may have other scores; `shifted` and `near_boundary` tell.
    """

    refused: Mapping[int, str] = MappingProxyType({})
    classes: Array | None = None
    n_outputs: int = 1
    rows_read: int = 0
    fits_made: int = 0
    reads_moments: bool = False
    checks_rounding: bool = False
    varies_within_tol: bool = False

    def subset(self, settings: Sequence[int]) -> Answers:
        """The answers of some settings, none of them refused."""
        raise NotImplementedError

    def respond(self, role: Role, fold: Fold) -> Mapping[str, Array]:
        """Predictions for the rows of a role, by method name, each of shape (n_settings, n_rows, ...)."""
        raise NotImplementedError

    def from_moments(self, moments: Moments) -> Residuals | None:
        """The residuals of all settings, from the moments of some rows; or None."""
        return None

    def lost_digits(self, residuals: Residuals, moments: Moments) -> Array:
        """Settings whose scores rounding could change, as a mask of shape (n_settings,)."""
        return np.zeros(0, dtype=bool)

    def shifted(self, side: float) -> Answers:
        """Other answers that `tol` would allow, on one side (1) or the other (-1)."""
        raise NotImplementedError

    def near_boundary(self, role: Role, fold: Fold) -> Any:
        """How many rows have a label that `tol` leaves open, (n_settings,); where the rows lie."""
        raise NotImplementedError


@dataclass(frozen=True)
class Predictions(Answers):
    """Predictions as arrays.

    Attributes
    ----------
    test : dict of str to ndarray of shape (n_settings, n_test, ...)
        By method: ``"predict"``, ``"predict_proba"``, ``"decision_function"``.
    train : dict of str to ndarray of shape (n_settings, n_train, ...), optional
        The same for the training rows; needed only for training scores.
    refused : mapping of int to str
        See `Answers`. The arrays keep a place for these settings, which nothing reads.
    classes : ndarray of shape (n_classes,) or None
        See `Answers`.
    fits_made : int
        See `Answers`.
    """

    test: dict[str, Array]
    train: dict[str, Array] | None = None
    refused: Mapping[int, str] = field(default_factory=dict)
    classes: Array | None = None
    fits_made: int = 0

    def subset(self, settings: Sequence[int]) -> Predictions:
        index = list(settings)
        train = None if self.train is None else {name: a[index] for name, a in self.train.items()}
        return Predictions({name: a[index] for name, a in self.test.items()}, train, {}, self.classes)

    def respond(self, role: Role, fold: Fold) -> dict[str, Array]:
        """The arrays of a role."""
        if role == "test":
            return self.test
        if self.train is None:
            raise ValueError(
                "The family gave no predictions for the training rows; training scores need them."
            )
        return self.train


@dataclass(frozen=True)
class LinearAnswers(Answers):
    """Answers that are linear in the columns of X: scored from moments where the metric allows it.

    Attributes
    ----------
    linear : LinearPredictors
        One for each setting, refused ones included; float64, on the host.
    refused : mapping of int to str
        See `Answers`.
    roundings : tuple of Rounding
        What the solver's rounding may do to the predictors, for consecutive settings, all of them. Settings
        whose score it could change are fitted by scikit-learn. Empty: the solver loses nothing.
    flat : bool
        Whether predictions of one target have one dimension even where y is a column, as Ridge's have.
    as_good : frozenset of int
        Refused settings whose answers are within the solver's `tol` of the solution, as scikit-learn's are,
        but perhaps another iterate. They are answered where scikit-learn cannot make the fit: of chunks.
    """

    linear: LinearPredictors
    refused: Mapping[int, str] = field(default_factory=dict)
    roundings: tuple[Rounding, ...] = ()
    flat: bool = False
    as_good: frozenset[int] = frozenset()

    reads_moments = True

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Columns of y."""
        return int(self.linear.coef.shape[2])

    @property
    def checks_rounding(self) -> bool:  # type: ignore[override]
        """See `Answers`."""
        return bool(self.roundings)

    @property
    def alike(self) -> tuple[Any, ...]:
        """Answers for which it is equal are scored as one batch."""
        return (self.flat, type(self))

    def subset(self, settings: Sequence[int]) -> LinearAnswers:
        return replace(
            self, linear=self.linear.subset(settings), refused={}, roundings=(), as_good=frozenset()
        )

    def respond(self, role: Role, fold: Fold) -> dict[str, Array]:
        """Predictions, from one matrix product for all settings."""
        predicted, y = self.linear(fold.rows(role)), fold.targets(role)
        one = y.ndim == 1 or (self.flat and y.shape[1] == 1)
        return {"predict": predicted[:, :, 0] if one else predicted}

    def from_moments(self, moments: Moments) -> Residuals:
        return residuals_from_moments(self.linear, moments)

    def lost_digits(self, residuals: Residuals, moments: Moments) -> Array:
        return lost_to_rounding(residuals, self.roundings, moments)

    @staticmethod
    def joined(parts: Sequence[LinearAnswers]) -> LinearAnswers:
        """The answers of some groups of a fold, one after the other; they share the columns of X."""
        refused, n = dict[int, str](), 0
        for one in parts:
            refused.update({n + j: why for j, why in one.refused.items()})
            n += one.linear.coef.shape[1]
        joined = LinearPredictors.joined([one.linear for one in parts], 0)
        roundings = [r for one in parts for r in one.roundings or (Rounding.none(one.linear),)]
        return replace(parts[0], linear=joined, refused=refused, roundings=tuple(roundings))
