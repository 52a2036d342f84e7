"""Families that answer one setting for many sets of columns at once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from manyfit.families.protocol._answers import LinearAnswers
from manyfit.folds import TransformedMoments

Array = NDArray[Any]


class SolvesSubsets(ABC):
    """A family of regressors whose fits on many sets of columns are one batch of small systems."""

    @abstractmethod
    def fit_subsets(
        self, estimator: Any, setting: Mapping[str, Any], view: TransformedMoments, subsets: Array
    ) -> LinearAnswers:
        """The answers for m sets of k features of a fold, (m, k); raises `Unsupported` if it cannot.

        A set takes the place of a setting in the answers; those that rounding may change are refused.
        """
