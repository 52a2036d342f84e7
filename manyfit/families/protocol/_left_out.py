"""Families that tell the residuals of rows left out of a fit from one fit of all rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.families.protocol._answers import Answers, Predictions
from manyfit.families.protocol._protocol import Settings, Shape
from manyfit.folds import Array, FoldedMatrix


@dataclass(frozen=True)
class LeftOut:
    """Residuals of the test rows of k splits with m test rows each, for s settings and q targets."""

    splits: Array  # (k,)
    targets: Array  # (k, m, q), the numbers of y
    residuals: Array  # (k, m, s, q), targets less predictions of the fit without these rows
    # (k, s), answers that are not known: the fit without the rows is too far from that of all rows.
    merged: Array
    lost: Array  # (k, s), answers that rounding may change too much


class LeavesOut(ABC):
    """A family of moments whose fits without the test rows of a split follow from the fit of all rows."""

    @abstractmethod
    def leaves_out(self, estimator: Any, settings: Settings, shape: Shape) -> bool:
        """Whether that takes fewer operations than moments of each training set."""

    @abstractmethod
    def leave_out(
        self, estimator: Any, settings: Settings, data: FoldedMatrix, squares: bool = False
    ) -> Iterator[LeftOut]:
        """The residuals of all test rows, some splits at a time; raises `Unsupported` if it cannot.

        `squares`: only their sums of squares over each test set are read.
        """

    def answers_of(self, predicted: Array, single: bool, classes: Array | None) -> Answers:
        """The answers of one split from its predictions, (s, m, q); `single`: y is one-dimensional."""
        return Predictions({"predict": np.ascontiguousarray(predicted[:, :, 0] if single else predicted)})


class LeavesRowsOut(ABC):
    """A family of rows that predicts each row, as the fit without it would, from one fit of all rows."""

    @abstractmethod
    def leave_rows_out(self, estimator: Any, settings: Settings, X: Any, y: Array) -> Answers:
        """Answers whose test rows are all rows; raises `Unsupported` if it cannot.

        X is an array of float64 on the host, and y has a number or label for each row.
        """
