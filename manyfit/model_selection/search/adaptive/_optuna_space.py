"""The space of `OptunaSearchCV`: lists and distributions as Optuna's distributions, and back to values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Optuna stores these in every storage; other choices are known to it by their text.
_PLAIN = (str, bool, int, float, type(None))
# Quantiles of a distribution without bounds stay away from 0 and 1, where they are infinite.
_EDGE = sys.float_info.epsilon


@dataclass(frozen=True)
class Dimension:
    """A parameter: Optuna's distribution, and the value of the estimator for Optuna's value."""

    distribution: Any
    value: Callable[[Any], Any]

    def contains(self, value: Any) -> bool:
        """Whether Optuna may draw a value."""
        choices = getattr(self.distribution, "choices", None)
        if choices is not None:
            return value in choices
        known = isinstance(value, int | float)
        return known and bool(self.distribution.low <= value <= self.distribution.high)


Space = Mapping[str, Dimension] | Callable[[Any], Mapping[str, Any]]


def as_space(given: Any) -> Space:
    """The space of a search; a function of the trial stays as it is.

    Raises TypeError or ValueError for a parameter that is neither a list nor a known kind of distribution.
    """
    if callable(given):
        return given
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            "OptunaSearchCV: param_distributions has to be a dict of lists and distributions, or a function "
            f"of the trial, got {given!r}."
        )
    return {parameter: _dimension(parameter, one) for parameter, one in given.items()}


def _dimension(parameter: str, given: Any) -> Dimension:
    from optuna.distributions import BaseDistribution

    if isinstance(given, BaseDistribution):
        return Dimension(given, _same)
    if hasattr(given, "ppf") and hasattr(given, "dist"):
        return _scipy_dimension(parameter, given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given:
            raise ValueError(f"OptunaSearchCV: the list of values of {parameter!r} is empty.")
        return _choices(given)
    raise TypeError(
        f"OptunaSearchCV: {parameter!r} has to be a list of values, a distribution of Optuna or a frozen one "
        f"of scipy, got {given!r}."
    )


def _choices(values: Sequence[Any]) -> Dimension:
    from optuna.distributions import CategoricalDistribution

    values = [one.item() if isinstance(one, np.generic) else one for one in values]
    # Optuna would take equal values of other types for one, as 1 and 1.0.
    is_plain = all(isinstance(one, _PLAIN) for one in values)
    if is_plain and len({(type(one), one) for one in values}) == len({*values}):
        return Dimension(CategoricalDistribution(tuple(values)), _same)
    # By number, too: two values may print alike.
    texts = {f"{j}: {one!r}": one for j, one in enumerate(values)}
    return Dimension(CategoricalDistribution(tuple(texts)), texts.__getitem__)


def _scipy_dimension(parameter: str, given: Any) -> Dimension:
    """Bounds of the uniform distributions of scipy; of others the quantile is what Optuna chooses."""
    from optuna.distributions import FloatDistribution, IntDistribution

    low, high = given.support()
    if np.isnan(low) or np.isnan(high):
        raise ValueError(f"OptunaSearchCV: the distribution of {parameter!r} is none with {given.args}.")
    kind = given.dist.name
    if kind == "uniform":
        return Dimension(FloatDistribution(float(low), float(high)), _same)
    if kind == "randint":
        return Dimension(IntDistribution(int(low), int(high)), _same)
    if kind in ("loguniform", "reciprocal") and np.isclose(given.median() ** 2, low * high):
        return Dimension(FloatDistribution(float(low), float(high), log=True), _same)
    lowest = 0.0 if np.isfinite(low) else _EDGE
    highest = 1.0 if np.isfinite(high) else 1 - _EDGE
    as_number = int if hasattr(given.dist, "pmf") else float

    def value(quantile: float) -> Any:
        # The quantile 0 of a discrete distribution lies below all of its values.
        return as_number(max(given.ppf(quantile), low))

    return Dimension(FloatDistribution(lowest, highest), value)


def _same(value: Any) -> Any:
    return value
