"""Models that are trained further, as candidates of the engine: a fit goes on from a model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import BaseEstimator

from manyfit._compat import check_fit_failures
from manyfit.model_selection.job._job import Job, Result
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.running._engine import run
from manyfit.model_selection.search.adaptive._growing import grow_function


class Kept:
    """A model among the parameters of a candidate: a clone of it is a copy, fitted as it is."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return Kept(copy.deepcopy(self.model, memo))


class PartialFits(BaseEstimator):
    """Its fit trains a copy of a model some calls further on all rows; `model_` is the copy."""

    def __init__(self, kept: Any = None, n_made: int = 0, n_calls: int = 1, classes: Any = None) -> None:
        self.kept = kept
        self.n_made = n_made
        self.n_calls = n_calls
        self.classes = classes

    def fit(self, X: Any, y: Any = None, **params: Any) -> PartialFits:
        """Go on from the model."""
        model = self.kept.model
        grow, classes = grow_function(model), {} if self.classes is None else {"classes": self.classes}
        assert grow is not None
        for made in range(self.n_made, self.n_made + self.n_calls):
            grow(model, made, (X,) if y is None else (X, y), params | classes)
        self.model_ = model
        return self


@dataclass(frozen=True)
class ModelScorer:
    """A scorer of the model that a `PartialFits` holds."""

    scorer: Any

    def __call__(self, fitted: PartialFits, X: Any, y: Any = None, **params: Any) -> float:
        return float(self.scorer(fitted.model_, X, *(() if y is None else (y,)), **params))


def advance(
    job: Job, models: Sequence[Any], made: Sequence[int], calls: Sequence[int], classes: Any
) -> tuple[list[Result], Report]:
    """Let models that have made some calls make more, and score them; results hold them as ``model``."""
    candidates: list[Mapping[str, Any]] = [
        {"kept": Kept(model), "n_made": int(before), "n_calls": int(n), "classes": classes}
        for model, before, n in zip(models, made, calls, strict=True)
    ]
    job = replace(job, candidates=candidates)
    results, report = run(job, prepare(job))
    check_fit_failures(results, job.options.error_score)
    for one in results:
        one["model"] = getattr(one.pop("estimator", None), "model_", None)
    return results, report
