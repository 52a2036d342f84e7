"""One grid search, as every contender of a benchmark runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, check_cv

Data = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """One grid search, the same for every contender, without a refit."""

    estimator: Any
    grid: Mapping[str, Any]
    cv: Any = 5
    scoring: str | None = None

    @property
    def settings(self) -> int:
        """Number of settings of the grid."""
        return len(ParameterGrid(dict(self.grid)))

    def with_params(self, params: Mapping[str, Any]) -> Any:
        """Return an unfitted estimator at one setting."""
        return clone(self.estimator).set_params(**params)

    def splits(self, X: NDArray[Any], y: NDArray[Any]) -> list[Data]:
        """Return the (train, test) indices that scikit-learn's search draws from ``cv``."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        return list(cv.split(X, y))

    def step_classes(self) -> tuple[type, ...]:
        """Return the classes of the steps; for an estimator that is no pipeline, its class."""
        steps = getattr(self.estimator, "steps", [("", self.estimator)])
        return tuple(type(step) for _, step in steps)
