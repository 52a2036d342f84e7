"""X, y and weights of a search as folded matrices, made when a strategy first reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit.arrays import is_xp_array
from manyfit.estimators import Shape
from manyfit.folds import (
    FoldedMatrix,
    Unsupported,
    Weights,
    as_labels,
    as_row_source,
    as_targets,
    as_weights,
)
from manyfit.metrics import SharedScoring
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._cost_checks import n_classes, require_memory
from manyfit.model_selection.planning._metadata_routing import fit_weights
from manyfit.model_selection.planning.steps._order import sample


class SearchData:
    """The data of a job as the matrices that moments and iterations read.

    The plan makes it and hands it on to the run; a worker makes its own.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self._moments: FoldedMatrix | None = None
        self._moments_reason: str | None = None
        self._iterations: dict[bool, FoldedMatrix] = {}
        self._raw_weights: tuple[Any, Any] | None = None
        self._n_classes: int | None = None

    def require_weights(self, candidate: int, path: str, scoring: SharedScoring) -> None:
        """Take the weights of fits and scores; raise `Unsupported` if those of another group differ."""
        fit_params = self.job.options.fit_params
        model = sample(self.job, candidate) if fit_params else self.job.estimator
        raw = fit_weights(model, path, fit_params), scoring.weights
        self._raw_weights = self._raw_weights or raw
        if any(one is not other for one, other in zip(raw, self._raw_weights, strict=True)):
            raise Unsupported("its last step has other weights than that of the settings before it")

    def for_moments(self) -> FoldedMatrix:
        """X and y as numbers, both dense; raises `Unsupported` if they are not."""
        if self._moments is None and self._moments_reason is None:
            try:
                self._moments = self._load()
            except (Unsupported, IndexError) as why:
                self._moments_reason = str(why)
        if self._moments is None:
            raise Unsupported(str(self._moments_reason))
        return self._moments

    def _load(self) -> FoldedMatrix:
        job = self.job
        X = as_row_source(job.X)
        if X.nnz is not None:
            raise Unsupported(f"X is a {type(job.X).__name__}, not a dense array or DataFrame")
        y = as_targets(job.y if is_xp_array(job.X) else job.copy_to_host(job.y, "y"))
        n = X.shape[0]
        if n != y.shape[0]:
            raise Unsupported("X and y differ in length")
        data = FoldedMatrix(X, y, job.splits, self._weights(n), job.y, copy_to_host=job.copy_to_host)
        require_memory(data.moment_bytes, job.options.memory_limit)
        return data

    def for_iterations(self, estimator: Any, has_steps: bool) -> FoldedMatrix:
        """X, dense or sparse, and the labels or the one target of an estimator; a sparse X has no steps."""
        labels = is_classifier(estimator)
        if labels not in self._iterations:
            self._iterations[labels] = self._rows(labels)
        data = self._iterations[labels]
        if has_steps and data.X.nnz is not None:
            raise Unsupported("X is sparse, and steps are seen through moments of dense data only")
        return data

    def _rows(self, labels: bool) -> FoldedMatrix:
        job = self.job
        read_y = as_labels if labels else as_targets
        X, y = as_row_source(job.X), read_y(job.copy_to_host(job.y, "y"))
        if y.ndim != 1:
            raise Unsupported("y has several columns")
        if X.shape[0] != len(y):
            raise Unsupported("X and y differ in length")
        numbers = y if y.dtype.kind in "fiu" else np.zeros(len(y))
        return FoldedMatrix(X, y, job.splits, self._weights(len(y)), job.y, numbers)

    def _weights(self, n: int) -> Weights:
        """The weights of fits and of scores, which are one array if they are one for the user."""
        copy = self.job.copy_to_host
        assert self._raw_weights is not None
        fit, score = self._raw_weights
        weights = Weights(as_weights(copy(fit, "weights"), n))
        if score is None:
            return weights
        return Weights(weights.fit, weights.fit if score is fit else as_weights(copy(score, "weights"), n))

    def moment_passes(self) -> float:
        """Passes over X that sum all moments: one for each group of atoms and each set of weights."""
        assert self._moments is not None
        weights = self._moments.weights
        return float(len(self.job.splits.atom_groups) * len({id(None), id(weights.fit), id(weights.score)}))

    def shape(self, data: FoldedMatrix, estimator: Any) -> Shape:
        """The size of one fit, for estimates of cost."""
        k, X = self.job.splits.n_splits, data.X
        n_train = max(1, round(X.shape[0] * (1 - 1 / max(k, 2))))
        entries = round(X.nnz * n_train / X.shape[0]) if X.nnz is not None else None
        classes = n_classes(estimator, data.y) if is_classifier(estimator) else 0
        return Shape(n_train, X.shape[1], data.n_targets, k, classes, entries, X.shape[0] - n_train)

    def rough_shape(self, estimator: Any) -> Shape:
        """The size of one fit before any step, as far as X tells it."""
        job, n = self.job, self.job.splits.n_samples
        k, p, q = job.splits.n_splits, getattr(job.X, "shape", ())[1:2], getattr(job.y, "shape", ())[1:2]
        n_train = max(1, round(n * (1 - 1 / max(k, 2))))
        if is_classifier(estimator) and self._n_classes is None:
            self._n_classes = n_classes(estimator, as_labels(job.copy_to_host(job.y, "y")))
        return Shape(n_train, p[0] if p else 0, q[0] if q else 1, k, self._n_classes or 0, n_test=n - n_train)
