"""The numbers of a column in some rows, without gaps: what scalers and imputers learn from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manyfit.folds.splits._atoms import Array


def apply_function(function: Callable[[Array], Array] | None, values: Array) -> Array:
    """Numbers behind an elementwise function, or without one; numbers that are not finite make no warning."""
    if function is None:
        return values
    with np.errstate(all="ignore"):
        return function(values)


@dataclass(frozen=True)
class CodeNumbers:
    """The function of a `NumberColumn` that an encoder has made of categories: a number for each code."""

    numbers: tuple[float, ...]

    def __call__(self, codes: Array) -> Array:
        """The numbers of some codes."""
        return np.array(self.numbers)[codes]


class KnownNumbers:
    """The numbers of a column that are no gaps, and how many gaps there are."""

    def __init__(self, numbers: Array) -> None:
        is_gap = np.isnan(numbers)
        self.values, self.n_gaps = numbers[~is_gap], int(is_gap.sum())

    @property
    def size(self) -> int:
        """How many they are."""
        return int(self.values.size)

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(self.values.mean())

    @property
    def variance(self) -> float:
        """Their variance, over their number."""
        return float(self.values.var())

    @property
    def low(self) -> float:
        """The smallest."""
        return float(self.values.min())

    @property
    def high(self) -> float:
        """The largest."""
        return float(self.values.max())


class SummedNumbers(KnownNumbers):
    """The same from size, mean, sum of squares about it, minimum and maximum; `load` reads the numbers."""

    size, mean, variance, low, high = 0, 0.0, 0.0, 0.0, 0.0  # type: ignore[assignment]

    def __init__(self, spread: tuple[float, ...], n_gaps: int, load: Callable[[], Array]) -> None:
        size, self.mean, squares, self.low, self.high = spread  # type: ignore[misc]
        self.size, self.n_gaps, self._load = int(size), n_gaps, load  # type: ignore[misc]
        self.variance = squares / size if size else 0.0  # type: ignore[misc]

    @cached_property
    def values(self) -> Array:  # type: ignore[override]
        """The numbers."""
        numbers = self._load()
        return numbers[~np.isnan(numbers)]
