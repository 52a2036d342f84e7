"""Models that are trained further, as candidates of the engine: a fit goes on from a model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from sklearn.base import BaseEstimator

from manyfit._compat import check_method_params, safe_split
from manyfit.model_selection.checkpoint._models import ModelCheckpoint, Trained
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.running._engine import fit_pairs
from manyfit.model_selection.search.adaptive.incremental._growing import grow_function


class Step(NamedTuple):
    """What a model does in a round: from the calls that it has made on a split to more of them."""

    name: Any
    split: int
    made: int
    target: int


class Trainer(Protocol):
    """Trains and scores models."""

    def train(
        self, steps: Sequence[Step], trained: Sequence[Trained], checkpoint: ModelCheckpoint | None = None
    ) -> tuple[list[Result], Report]:
        """Results in the order of `steps`, each with its ``model``, or None if it was restored or failed.

        A model of `trained` may have made fewer calls than its step says, or more: it makes those that are
        left to the target. It closes the checkpoint.
        """

    def further(self, trained: Trained, split: int | None, target: int) -> Any:
        """A copy of a model, trained to so many calls on the training rows of a split; None: on all rows."""


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


@dataclass(frozen=True)
class EngineTrainer:
    """Trains models as fits of the engine: in this process, joblib's, or on a cluster.

    `job` has no candidates; its splits are those of the search.
    """

    job: Job
    classes: Any

    def train(
        self, steps: Sequence[Step], trained: Sequence[Trained], checkpoint: ModelCheckpoint | None = None
    ) -> tuple[list[Result], Report]:
        candidates: list[Mapping[str, Any]] = [
            {
                "kept": Kept(one.model),
                "n_made": int(one.calls),
                "n_calls": int(step.target - one.calls),
                "classes": self.classes,
            }
            for step, one in zip(steps, trained, strict=True)
        ]
        job, pairs = replace(self.job, candidates=candidates), [(c, one.split) for c, one in enumerate(steps)]
        bar = Progress(len(pairs), job.options.verbose)
        sink = ResultSink(job, checkpoint, bar=bar, fits_each=1)
        report = fit_pairs(job, prepare(job).plan, pairs, sink)
        return results_with_models(sink, pairs), report

    def further(self, trained: Trained, split: int | None, target: int) -> Any:
        X, y, params = self.job.X, self.job.y, self.job.options.fit_params
        if split is not None:
            rows, _ = self.job.splits.indices(split)
            params = check_method_params(X, params=params, indices=rows)
            X, y = safe_split(self.job.estimator, X, y, rows)
        kept = Kept(copy.deepcopy(trained.model))
        fits = PartialFits(kept, trained.calls, target - trained.calls, self.classes)
        return fits.fit(X, y, **params).model_


def results_with_models(sink: ResultSink, pairs: Sequence[Pair]) -> list[Result]:
    """The results of some pairs, each with its model, and whether it was restored."""
    return [
        {**sink.results[pair], "model": model_of(sink.results[pair]), "restored": pair in sink.restored}
        for pair in pairs
    ]


def model_of(result: Result) -> Any:
    """The model that a fit of the engine has trained, or None."""
    return getattr(result.get("estimator"), "model_", None)
