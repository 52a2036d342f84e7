"""Families that answer one setting for many sets of columns at once."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyfit.families.protocol._answers import LinearAnswers
from manyfit.families.protocol._protocol import Setting
from manyfit.folds import Array, Moments, TransformedMoments
from manyfit.metrics.scoring import Residuals, lost_predictions


@dataclass(frozen=True)
class SubsetAnswers(LinearAnswers):
    """Answers for m sets of columns, with bounds of what rounding did to them."""

    noise: Array = field(kw_only=True)  # (m, q), how far coefficients may be off, in units of `unit`
    unit: Array = field(kw_only=True)  # (p, m), a unit for the coefficient of each column of X
    centre: Array = field(kw_only=True)  # (p,), where errors of coefficients change no prediction

    @property
    def checks_rounding(self) -> bool:  # type: ignore[override]
        return True

    def lost_digits(self, residuals: Residuals, moments: Moments) -> Array:
        p, q = self.centre.size, residuals.y.size
        variances = np.maximum(np.diagonal(moments.scatter)[:p], 0.0) / moments.weight
        spread = np.sqrt((variances + (moments.mean[:p] - self.centre) ** 2) @ self.unit**2)
        size = np.sqrt(residuals.about_zero / residuals.weight)
        y_size = np.sqrt(residuals.y / residuals.weight) + np.abs(moments.mean[-q:])
        return lost_predictions(spread[:, None] * self.noise, size, y_size)


class SolvesSubsets(ABC):
    """A family of regressors whose fits on many sets of columns are one batch of small systems."""

    @abstractmethod
    def fit_subsets(
        self, estimator: Any, setting: Setting, view: TransformedMoments, subsets: Array
    ) -> SubsetAnswers:
        """The answers for m sets of k features of a fold, (m, k); raises `Unsupported` if it cannot.

        A set takes the place of a setting in the answers; those that rounding may change are refused.
        """
