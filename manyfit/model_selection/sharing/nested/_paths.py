"""Selectors that go from one set of columns to the next: the longest path passes the others."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.feature_selection import RFE, SequentialFeatureSelector

from manyfit._compat.nested import RFEPath, SequentialPath
from manyfit.model_selection.sharing.nested._rule import (
    NestedRule,
    is_count,
    is_fraction,
    is_number,
    register_rule,
)


class Elimination(NestedRule):
    """RFE: the path to the smallest number of features passes the others, or has them within one step."""

    serves, params = (RFE,), ("n_features_to_select",)

    def wide(self, step: Any, asked: Sequence[Any], X: Any) -> Any:
        numbers = {k for one in asked if (k := _rfe_count(one, X)) is not None}
        if len(numbers) < 2 or step.verbose or _rfe_count(step, X) not in numbers:
            return None
        params = step.get_params(deep=False) | {"n_features_to_select": min(numbers)}
        return RFEPath(frozenset(numbers), **params)

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        return _rfe_count(step, X) in wide.path_

    def narrow(self, step: Any, wide: Any, X: Any) -> None:
        k = _rfe_count(step, X)
        assert k is not None
        wide.narrow(step, k)
        copy_input_names(step, wide)


def _rfe_count(step: Any, X: Any) -> int | None:
    """The number of features that RFE selects; None if it warns of the number, or may fail."""
    number, n_features = step.n_features_to_select, X.shape[1]
    if number is None:
        number = n_features // 2
    elif is_fraction(number):
        number = int(n_features * number)
    return int(number) if is_count(number, 1, n_features) else None


class SequentialSteps(NestedRule):
    """SequentialFeatureSelector: the path of most steps begins with the others."""

    serves, params = (SequentialFeatureSelector,), ("n_features_to_select", "tol")

    def kind(self, step: Any) -> Hashable:
        """Whether scores decide where the path ends."""
        return _ends_by_score(step)

    def wide(self, step: Any, asked: Sequence[Any], X: Any) -> Any:
        if _n_steps(step, X) is None:
            return None
        steps = [(n, one) for one in asked if (n := _n_steps(one, X)) is not None]
        if len({(repr(one.n_features_to_select), repr(one.tol)) for _, one in steps}) < 2:
            return None
        if self.kind(step):
            longest = min((one for _, one in steps), key=lambda one: float(one.tol))
        else:
            longest = max(steps, key=lambda found: found[0])[1]
        return SequentialPath(**longest.get_params(deep=False))

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        n_steps = _n_steps(step, X)
        return n_steps is not None and _n_chosen(step, wide, n_steps) is not None

    def narrow(self, step: Any, wide: Any, X: Any) -> None:
        chosen = [feature for feature, _ in wide.path_[: _n_chosen(step, wide, _n_steps(step, X))]]
        mask = np.zeros(X.shape[1], dtype=bool)
        mask[chosen] = True
        step.support_ = ~mask if step.direction == "backward" else mask
        step.n_features_to_select_ = step.support_.sum()
        copy_input_names(step, wide)


def _ends_by_score(step: Any) -> bool:
    number = step.n_features_to_select
    return isinstance(number, str) and number == "auto" and step.tol is not None


def _n_steps(step: Any, X: Any) -> int | None:
    """The most steps of a path; None if scikit-learn refuses the parameters."""
    number, n_features, tol = step.n_features_to_select, X.shape[1], step.tol
    if tol is not None and not (is_number(tol, Real, -np.inf) and np.isfinite(tol)):
        return None
    if tol is not None and tol < 0 and step.direction == "forward":
        return None
    if isinstance(number, str):
        return None if number != "auto" else n_features // 2 if tol is None else n_features - 1
    if is_fraction(number):
        number = int(n_features * number)
    elif not (isinstance(number, Integral) and is_count(number, 1, n_features - 1)):
        return None
    if step.direction == "forward":
        return int(number)
    return n_features - int(number) if number >= 1 else None  # a fit without columns fails


def _n_chosen(step: Any, wide: Any, n_steps: int | None) -> int | None:
    """How many steps of a path the fit of a setting makes; None if the path is too short to tell."""
    assert n_steps is not None
    if _ends_by_score(step):
        before = -np.inf
        for j, (_, score) in enumerate(wide.path_[:n_steps]):
            if score - before < step.tol:
                return j
            before = score
    return n_steps if n_steps <= len(wide.path_) else None


def copy_input_names(step: Any, wide: Any) -> None:
    """Note the columns of the input, as the check of the input does in a fit."""
    names = ("n_features_in_", "feature_names_in_")
    vars(step).update({name: vars(wide)[name] for name in names if name in vars(wide)})


register_rule(Elimination())
register_rule(SequentialSteps())
