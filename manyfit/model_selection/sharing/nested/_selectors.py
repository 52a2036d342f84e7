"""Selectors of columns that choose when they transform: their fit does not read the parameter."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.feature_selection import (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
)

from manyfit.model_selection.sharing.nested._rule import NestedRule, is_count, is_number, register_rule


def _is_k(value: Any, X: Any) -> bool:
    """Whether it is a number of columns; scikit-learn warns of one that is larger than there are."""
    return (isinstance(value, str) and value == "all") or is_count(value, 0, X.shape[1])


class OneParameter(NestedRule):
    """A parameter that nests alone: ``allows(step, X)`` says whether its value is one that a fit takes."""

    def __init__(self, param: str, allows: Callable[[Any, Any], bool], *serves: type) -> None:
        self.serves, self.params, self._allows = serves, (param,), allows

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        return self._allows(step, X)


class Variances(NestedRule):
    """A threshold of variances; at zero the fit compares ranges, too, and serves no other."""

    serves, params = (VarianceThreshold,), ("threshold",)

    def kind(self, step: Any) -> Hashable:
        return is_number(step.threshold, Real) and step.threshold > 0

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        if not self.kind(step):
            return False
        left = True if wide is None else np.isfinite(wide.variances_) & (wide.variances_ > step.threshold)
        return bool(np.any(left))


class Importances(NestedRule):
    """A threshold of the importances of an estimator, and the most columns that it leaves."""

    serves, params = (SelectFromModel,), ("threshold", "max_features")

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        threshold, most = step.threshold, step.max_features
        is_known = threshold is None or isinstance(threshold, str) or is_number(threshold, Real, -np.inf)
        return not step.prefit and is_known and (most is None or is_count(most, 0, X.shape[1]))

    def narrow(self, step: Any, wide: Any, X: Any) -> None:
        super().narrow(step, wide, X)
        vars(step).pop("max_features_", None)
        if step.max_features is not None:
            step.max_features_ = step.max_features


register_rule(OneParameter("k", lambda step, X: _is_k(step.k, X), SelectKBest))
register_rule(
    OneParameter("percentile", lambda step, X: is_number(step.percentile, Real, 0, 100), SelectPercentile)
)
register_rule(
    OneParameter("alpha", lambda step, X: is_number(step.alpha, Real, 0, 1), SelectFpr, SelectFdr, SelectFwe)
)
register_rule(
    OneParameter(
        "param",
        lambda step, X: _is_k(step.param, X) if step.mode == "k_best" else is_number(step.param, Real),
        GenericUnivariateSelect,
    )
)
register_rule(Variances())
register_rule(Importances())
