"""HyperbandSearchCV, with dask-ml's parameters and attributes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from manyfit.introspection.object_state import keep_arguments
from manyfit.introspection.parameter_docs import complete_parameters
from manyfit.model_selection.search.adaptive.incremental._incremental import (
    IncrementalSearchCV,
    SuccessiveHalvingSearchCV,
)
from manyfit.model_selection.search.adaptive.incremental._model_pool import ModelPool
from manyfit.model_selection.search.adaptive.incremental._schedules import Schedule, hyperband_brackets
from manyfit.model_selection.search.adaptive.incremental._training import IncrementalSearch


@complete_parameters(IncrementalSearchCV, SuccessiveHalvingSearchCV)
class HyperbandSearchCV(IncrementalSearch):
    """Hyperband over models with `partial_fit`: some brackets train many models briefly, others few for long.

    It has the parameters and attributes of dask-ml's class of the same name, and needs no cluster. Brackets
    train at the same time, on the same rows, and are scored on the same held-out rows.

    Parameters
    ----------
    max_iter : int, default=81
        The most calls of ``partial_fit`` of a model; it also decides how many models there are.

    Attributes
    ----------
    cv_results_, history_, model_history_, best_estimator_, ...
        As of `IncrementalSearchCV`; with the ``bracket`` of each model, whose ``model_id`` is such as
        "bracket=2-5".
    metadata_ : dict
        What was done, in the form of `metadata`.

    References
    ----------
    Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar, Hyperband: A novel bandit-based approach to
    hyperparameter optimization, JMLR 18, 2018.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> from manyfit.model_selection import HyperbandSearchCV
    >>> X, y = load_digits(return_X_y=True)
    >>> space = {"alpha": loguniform(1e-5, 1)}
    >>> search = HyperbandSearchCV(SGDClassifier(random_state=0), space, max_iter=9, random_state=0)
    >>> search.metadata["n_models"], search.metadata["partial_fit_calls"]
    (17, 69)
    >>> search.fit(X, y).metadata_ == search.metadata
    True
    """

    def __init__(
        self,
        estimator: Any,
        parameters: Any,
        max_iter: int = 81,
        aggressiveness: float = 3,
        patience: int | bool = False,
        tol: float | None = 0.001,
        test_size: float | None = None,
        random_state: Any = None,
        scoring: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        error_score: float | str = np.nan,
        cv: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        keep_arguments(self, locals())

    @property
    def metadata(self) -> dict[str, Any]:
        """Models and calls of ``partial_fit`` of the search and of each bracket, before any training."""
        self._validate_params()
        found = {
            s: (one.n, one.n_calls, [calls for _, calls in one.rounds()])
            for s, one in hyperband_brackets(self.max_iter, self.aggressiveness).items()
        }
        return _metadata(found)

    def _schedules(self) -> dict[str, tuple[Schedule, list[dict[str, Any]]]]:
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return {
            f"bracket={s}-": (schedule, self._draw(schedule.n, np.random.RandomState((seed + s) % 2**32)))
            for s, schedule in hyperband_brackets(self.max_iter, self.aggressiveness).items()
        }

    def _finish(self, pool: ModelPool) -> None:
        super()._finish(pool)
        found: dict[int, tuple[int, int, list[int]]] = {}
        for s in dict.fromkeys(self.cv_results_["bracket"].tolist()):
            of_bracket = [one for one in self.history_ if one["bracket"] == s]
            rows = self.cv_results_["bracket"] == s
            calls = int(self.cv_results_["partial_fit_calls"][rows].sum())
            decisions = sorted({one["partial_fit_calls"] for one in of_bracket})
            found[s] = int(rows.sum()), calls, decisions
        self.metadata_ = _metadata(found)


def _metadata(brackets: Mapping[int, tuple[int, int, list[int]]]) -> dict[str, Any]:
    return {
        "n_models": sum(n for n, _, _ in brackets.values()),
        "partial_fit_calls": sum(calls for _, calls, _ in brackets.values()),
        "brackets": [
            {"bracket": s, "n_models": n, "partial_fit_calls": calls, "decisions": decisions}
            for s, (n, calls, decisions) in brackets.items()
        ],
    }
