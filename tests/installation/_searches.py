"""Searches that tests make with and without `install`, and how their attributes are compared."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import GridSearchCV

ALPHAS = {"alpha": [0.1, 1.0, 10.0]}


def without_times(value):
    """An attribute of a search without seconds, and estimators as their text."""
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if "_time" not in name}
    return repr(value) if hasattr(value, "get_params") else value


def same(one, other) -> None:
    """Both searches have the same attributes."""
    assert sorted(vars(one)) == sorted(vars(other))
    for name, value in vars(one).items():
        found = vars(other)[name]
        if name not in ("refit_time_", "cv", "random_state", "_checked_cv_orig", "scorer_"):
            assert type(found) is type(value), name
            np.testing.assert_equal(_rounded(without_times(found)), _rounded(without_times(value)), name)


def _rounded(value):
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.round(9)
    return round(value, 9) if isinstance(value, float) else value


class OwnScore(GridSearchCV):
    def score(self, X, y=None, **params):
        return -1.0


class MoreParameters(GridSearchCV):
    """A subclass with a parameter of its own, which is checked."""

    _parameter_constraints = {**GridSearchCV._parameter_constraints, "level": [int]}  # noqa: RUF012

    def __init__(self, estimator, param_grid, *, level=1, cv=None):
        super().__init__(estimator, param_grid, cv=cv)
        self.level = level


def untraced(message) -> list[str]:
    """A text without the tracebacks in it, which name the modules that made a fit."""
    return [line for line in str(message).splitlines() if not line.startswith("  ")]
