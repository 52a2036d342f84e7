"""Transformers whose fit does not depend on one parameter: one fit of a fold serves all of its values.

Selectors of columns compute scores in their fit, and choose by them when they transform.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.feature_selection import (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
)

from manyfit.introspection.structural_key import structural_key


@dataclass(frozen=True)
class NestedStep:
    """The parameter that a transformer reads only when it transforms, and the values of which this is true.

    `serves` gets a value and a fitted transformer. It is False where the fit with that value would warn or
    raise: it is then made.
    """

    param: str
    serves: Callable[[Any, Any], bool]


def _is_number(value: Any, kind: type, most: float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and 0 <= value <= most  # type: ignore[operator]


def _is_count(value: Any, fitted: Any) -> bool:
    """Whether it is a number of columns; scikit-learn warns of one that is larger than there are."""
    is_all = isinstance(value, str) and value == "all"
    return is_all or _is_number(value, Integral, fitted.n_features_in_)


def _is_percentile(value: Any, fitted: Any) -> bool:
    return _is_number(value, Real, 100)


def _is_level(value: Any, fitted: Any) -> bool:
    return _is_number(value, Real, 1)


def _is_param(value: Any, fitted: Any) -> bool:
    return _is_count(value, fitted) if fitted.mode == "k_best" else _is_number(value, Real, np.inf)


def _leaves_columns(value: Any, fitted: Any) -> bool:
    """Whether a threshold keeps a column; at zero the fit compares ranges, too."""
    positive = _is_number(value, Real, np.inf) and value > 0 and fitted.threshold > 0
    return bool(positive and np.any(np.isfinite(fitted.variances_) & (fitted.variances_ > value)))


# Exact types. Their fits validate the parameter, and read it for nothing but what `serves` excludes (read
# in scikit-learn 1.7 to 1.9).
_NESTED: dict[type, NestedStep] = {
    SelectKBest: NestedStep("k", _is_count),
    SelectPercentile: NestedStep("percentile", _is_percentile),
    SelectFpr: NestedStep("alpha", _is_level),
    SelectFdr: NestedStep("alpha", _is_level),
    SelectFwe: NestedStep("alpha", _is_level),
    GenericUnivariateSelect: NestedStep("param", _is_param),
    VarianceThreshold: NestedStep("threshold", _leaves_columns),
}


def nested_param(step: Any) -> str | None:
    """The parameter for all values of which one fit of an unfitted transformer may serve."""
    rule = _NESTED.get(type(step))
    return None if rule is None else rule.param


def nested_key(step: Any) -> Hashable | None:
    """A key that is equal for transformers that differ in this parameter only; None if they have none.

    A threshold of zero has a key of its own, since the fit then compares ranges, too.
    """
    param = nested_param(step)
    if param is None:
        return None
    one = copy.copy(step)
    value, rest = getattr(step, param), None
    if type(step) is VarianceThreshold:
        rest = isinstance(value, (int, float, np.number)) and value > 0
    setattr(one, param, None)
    return "any", param, rest, structural_key(one)


def fitted_as(step: Any, fitted: Any) -> Any:
    """An unfitted transformer with the fit of one that differs in the parameter; None if it needs its own."""
    rule = _NESTED[type(step)]
    if not rule.serves(getattr(step, rule.param), fitted):
        return None
    learned = {name: value for name, value in vars(fitted).items() if name not in vars(step)}
    vars(step).update(learned)
    return step


def keep_own_arrays(fitted: Any) -> None:
    """Copy the learned arrays of a transformer, since a score function of a user may reuse their memory."""
    vars(fitted).update(
        {name: value.copy() for name, value in vars(fitted).items() if type(value) is np.ndarray}
    )
