"""What the answer ought to be, and how far from it scikit-learn may fall by rounding alone.

Both are found by running scikit-learn's own search again: once with an estimator that computes in extended
precision (or, for a family that iterates, with tight parameters), and a few times with rows in another order
and values moved by one unit in the last place. So scorers, weights and routing are scikit-learn's throughout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import _num_features

from tests.differential import _oracle
from tests.differential._optimum import at_the_optimum
from tests.differential._problem import Problem, weighable_steps
from tests.differential._recipe import FORMS, Data

PERTURBED_RUNS = 6


class InExtendedPrecision(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are those of `estimator`, computed by the oracle."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def get_metadata_routing(self) -> Any:
        """Route as the wrapped estimator does."""
        return self.estimator.get_metadata_routing()

    def fit(self, X: Any, y: Any, **params: Any) -> InExtendedPrecision:
        """Keep the rows: the oracle fits and predicts in one go."""
        self.rows_ = np.asarray(X, dtype=_float(X)), np.asarray(y)
        self.weights_ = dict(self._weights(params))
        self.n_features_in_ = _num_features(X)
        return self

    def _weights(self, params: dict[str, Any]) -> Any:
        for path, step in weighable_steps(self.estimator):
            name = f"{path}__sample_weight".removeprefix("__")
            if name in params and path:
                yield path, np.asarray(params[name])
            elif "sample_weight" in params and (not path or _asks_for_weights(step)):
                yield path, np.asarray(params["sample_weight"])

    def predict(self, X: Any) -> np.ndarray:
        """Predictions rounded to float64."""
        X_train, y_train = self.rows_
        new = np.asarray(X, dtype=X_train.dtype)
        return _oracle.predict(self.estimator, X_train, y_train, new, self.weights_).astype(np.float64)


def _asks_for_weights(step: Any) -> bool:
    return step.get_metadata_routing().fit.requests.get("sample_weight") is True


def _float(X: Any) -> Any:
    dtype = np.asarray(X).dtype
    return dtype if dtype.kind == "f" else np.float64


@dataclass(frozen=True)
class Truth:
    """The answers of one problem by the better route, and scikit-learn's own scatter; computed when asked."""

    problem: Problem

    @cached_property
    def results(self) -> dict[str, Any]:
        """`cv_results_` by the better route; NaN, or nothing at all, where there is none."""
        problem, data = self.problem, self.problem.recipe.build()
        if problem.case.result == "converged":
            return self._optimum()
        if not _oracle.AVAILABLE:
            return {}
        grids = problem.grid if isinstance(problem.grid, list) else [problem.grid]
        grid = [{f"estimator__{name}": values for name, values in g.items()} for g in grids]
        return self._run(replace(data, X=data.matrix), grid, InExtendedPrecision)

    @cached_property
    def scatter(self) -> list[dict[str, Any]]:
        """`cv_results_` of scikit-learn where only rounding differs."""
        data = self.problem.recipe.build()
        return [self._run(*self._perturbed(data, seed)) for seed in range(PERTURBED_RUNS)]

    @cached_property
    def nearby(self) -> list[dict[str, Any]]:
        """`cv_results_` where a family that converges may end; none for one that is exact."""
        if self.problem.case.result == "exact":
            return []
        return [self._optimum(aside=seed) for seed in range(PERTURBED_RUNS)]

    def _optimum(self, aside: int | None = None) -> dict[str, Any]:
        """At the optimum, or as far from it as a gradient that is small enough may leave one."""
        tighten = self.problem.case.tight if aside is None else {}
        # For the numbers that are given, whatever their dtype.
        data = self.problem.recipe.build()
        data = replace(data, X=data.matrix.astype(np.float64))
        return self._run(data, self.problem.grid, lambda e: at_the_optimum(e.set_params(**tighten), aside))

    def _run(self, data: Data, grid: Any, wrap: Any = clone, pairs: Any = None) -> dict[str, Any]:
        pairs = self.problem.pairs(data) if pairs is None else pairs
        changes = {"refit": False, "error_score": np.nan, "return_train_score": True}
        outcome = self.problem.attempt(GridSearchCV, grid, data, pairs, wrap, **changes)
        return outcome.results or {}

    def _perturbed(self, data: Data, seed: int) -> tuple[Data, Any, Any, Any]:
        rng = np.random.default_rng(seed)
        pairs = [(rng.permutation(train), test) for train, test in self.problem.pairs(data)]
        if seed % 2:
            matrix, labels = _by_one_ulp(data.matrix, rng), data.labels
            if not is_classifier(self.problem.estimator):
                labels = _by_one_ulp(labels, rng)
            form = FORMS[self.problem.recipe.form] if "pandas" in self.problem.recipe.form else np.asarray
            data = replace(data, X=form(matrix), y=labels)
        return data, self.problem.grid, lambda estimator: estimator, pairs


def _by_one_ulp(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move values by up to one unit in the last place; equal ones move alike, so duplicates stay so."""
    if A.dtype.kind != "f":
        return A
    values, where = np.unique(A, return_inverse=True)
    moved = values * (1 + np.finfo(A.dtype).eps * rng.uniform(-1, 1, len(values)))
    return moved.astype(A.dtype)[where].reshape(A.shape)
