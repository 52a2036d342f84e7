"""The contenders: manyfit, scikit-learn on all cores, scikit-learn around cuML's estimators.

cuml.accel changes scikit-learn in the whole process, so it runs in one of its own (`_accelerated.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sklearn

from benchmarks.gpu._problems import Problem

OURS, OURS_ON_HOST = "manyfit, device", "manyfit, host"
SKLEARN = "scikit-learn n_jobs=-1"
CUML_DEVICE, CUML_HOST = "scikit-learn + cuML, device", "scikit-learn + cuML, NumPy"
ACCEL = "cuml.accel"

Settings = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Contender:
    """A search class with an estimator; ``on_device`` says which copy of the data it reads.

    ``parallel`` says that it can make as many fits at a time as there are cores.
    """

    name: str
    search: Literal["manyfit", "scikit-learn"]
    estimator: Callable[[Problem], Any]
    on_device: bool
    parallel: bool = False

    def fit(self, problem: Problem, settings: Settings, X: Any, y: Any) -> Any:
        """Search some settings, and return the fitted search."""
        grid = [{name: [value] for name, value in params.items()} for params in settings]
        options = {"cv": problem.task.cv, "scoring": problem.task.scoring, "refit": False}
        options |= {"n_jobs": -1 if self.parallel else None, "error_score": "raise"}
        with sklearn.config_context(array_api_dispatch=self.on_device):
            return _class(self.search)(self.estimator(problem), grid, **options).fit(X, y)


def _class(library: str) -> Any:
    if library == "manyfit":
        from manyfit.model_selection import GridSearchCV
    else:
        from sklearn.model_selection import GridSearchCV
    return GridSearchCV


def _theirs(problem: Problem) -> Any:
    return problem.task.estimator


def _drop_in(problem: Problem) -> Any:
    return problem.task.estimator if problem.drop_in is None else problem.drop_in()


def _cumls(problem: Problem) -> Any:
    return problem.cuml()


def contenders(problem: Problem) -> list[Contender]:
    """Return the contenders without cuml.accel; the most important come first, in case time runs out."""
    on_host = [] if problem.own else [Contender(OURS_ON_HOST, "manyfit", _theirs, False, parallel=True)]
    return [
        Contender(OURS, "manyfit", _cumls if problem.own else _drop_in, True),
        Contender(CUML_DEVICE, "scikit-learn", _cumls, True),
        Contender(SKLEARN, "scikit-learn", _theirs, False, parallel=True),
        *on_host,
        Contender(CUML_HOST, "scikit-learn", _cumls, False),
    ]
