"""Searches that follow shared iterations to the optimum, on data too small for that to pay."""

from __future__ import annotations

from typing import Any

from manyfit.model_selection import GridSearchCV
from tests.differential._subject import sharing_whatever_it_costs


class Optimum(GridSearchCV):
    """`GridSearchCV` that shares whatever it costs, iterations wherever scikit-learn's solver would stop."""

    def __init__(self, estimator: Any, param_grid: Any, *, sharing: Any = "optimum", **params: Any) -> None:
        super().__init__(estimator, param_grid, sharing=sharing, **params)

    def plan(self, X: Any, y: Any = None, **params: Any) -> Any:
        with sharing_whatever_it_costs():
            return super().plan(X, y, **params)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        with sharing_whatever_it_costs():
            return super().fit(X, y, **params)
