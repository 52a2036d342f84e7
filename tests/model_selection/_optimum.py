"""Searches that follow shared iterations to the optimum."""

from __future__ import annotations

from typing import Any

from manyfit.model_selection import GridSearchCV


class Optimum(GridSearchCV):
    """`GridSearchCV` that shares iterations wherever scikit-learn's solver would stop."""

    def __init__(self, estimator: Any, param_grid: Any, *, sharing: Any = "optimum", **params: Any) -> None:
        super().__init__(estimator, param_grid, sharing=sharing, **params)
