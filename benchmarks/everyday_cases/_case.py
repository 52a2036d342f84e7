"""One everyday search, as either library runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

# Enough for each class of each case on each training set.
QUICK_ROWS = 480

# Scores of the search, or predictions, in an order that both libraries give; manyfit's report, if any.
Outcome = tuple[NDArray[Any], Any]


@dataclass(frozen=True)
class Case:
    """A search with its data: ``call`` gets ``model_selection`` of a library, X, y and ``n_jobs``."""

    name: str
    call: Callable[[Any, Any, Any, int | None], Outcome]
    data: Callable[[], tuple[Any, Any]]

    def rows(self, quick: bool) -> tuple[Any, Any]:
        """Return X and y, or the first rows of both."""
        X, y = self.data()
        return (_safe_indexing(X, np.arange(QUICK_ROWS)), y[:QUICK_ROWS]) if quick else (X, y)


CASES: dict[str, Case] = {}


def case(name: str, data: Callable[[], tuple[Any, Any]], call: Callable[..., Outcome]) -> None:
    """Register a case."""
    CASES[name] = Case(name, call, data)


def grid(name: str, data: Any, estimator: Any, grid: Any, *, cv: int = 5, scoring: Any = None) -> None:
    """Register a grid search, without a refit."""

    def call(library: Any, X: Any, y: Any, n_jobs: int | None) -> Outcome:
        search = library.GridSearchCV(estimator, grid, cv=cv, scoring=scoring, n_jobs=n_jobs, refit=False)
        return _outcome(search.fit(X, y))

    case(name, data, call)


def randomized(name: str, data: Any, estimator: Any, grid: Any, n_iter: int) -> None:
    """Register a randomized search, with its refit."""

    def call(library: Any, X: Any, y: Any, n_jobs: int | None) -> Outcome:
        search = library.RandomizedSearchCV(estimator, grid, n_iter=n_iter, random_state=0, n_jobs=n_jobs)
        return _outcome(search.fit(X, y))

    case(name, data, call)


def _outcome(search: Any) -> Outcome:
    names = sorted(name for name in search.cv_results_ if name.startswith("split"))
    return np.array([search.cv_results_[name] for name in names]), getattr(search, "report_", None)
