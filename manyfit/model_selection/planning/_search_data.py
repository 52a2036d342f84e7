"""X, y and weights of a search as folded matrices, made when a strategy first reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit.arrays import is_xp_array
from manyfit.families import Shape, TargetFunction, sparse_step_of
from manyfit.folds import (
    ChunkEncoding,
    ChunkRows,
    Encoding,
    FoldedMatrix,
    MixedRows,
    RowSource,
    TransformedRows,
    Unsupported,
    Weights,
    as_labels,
    as_row_source,
    as_rows,
    as_targets,
    as_weights,
    class_indicators,
    indicated_classes,
    may_be_in_chunks,
    require_one_dimension,
)
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._cost_checks import n_classes, require_memory
from manyfit.model_selection.planning._metadata_routing import fit_weights
from manyfit.model_selection.planning._pipeline_spec import StepSpec
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning.steps._encoded_columns import DENSE, EncodedColumns, Rows, reads_columns
from manyfit.model_selection.planning.steps._order import build_candidate


class SearchData:
    """The data of a job as the matrices that moments and iterations read.

    `prepare` makes it and hands it on to the run, beside the plan; a worker makes its own.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        # By whether y has labels, the encoding of X, if any, and the function of y; a text says why not.
        self._moments: dict[tuple[bool, Encoding | None, Any], FoldedMatrix | str] = {}
        self._iterations: dict[tuple[bool, Encoding | None], FoldedMatrix] = {}
        self._encodings = set[Encoding]()  # that are read
        self._raw_weights: tuple[Any, Any] | None = None
        self._n_classes: int | None = None
        self.bytes_before = self.bytes_read  # and planning reads some

    def require_weights(self, group: Group, scoring: SharedScoring) -> None:
        """Take the weights of fits and scores; raise `Unsupported` if those of another group differ."""
        fit_params = self.job.options.fit_params
        model = build_candidate(self.job, group.candidates[0]) if fit_params else self.job.estimator
        raw = fit_weights(model, group.path, fit_params), scoring.weights
        self._raw_weights = self._raw_weights or raw
        if any(one is not other for one, other in zip(raw, self._raw_weights, strict=True)):
            raise Unsupported("its last step has other weights than that of the settings before it")

    def for_moments(
        self, estimator: Any, steps: Sequence[StepSpec], function: TargetFunction | None = None
    ) -> FoldedMatrix:
        """X and y as dense numbers, for settings behind some steps; raises `Unsupported` if they are not.

        For a classifier the numbers of y are indicators of its classes; else `function` is applied to y.
        """
        key = labels, encoding, _ = is_classifier(estimator), self._encoding_behind(steps), function
        if key not in self._moments:
            try:
                self._moments[key] = self._load(labels, encoding, function)
            except (Unsupported, IndexError) as why:
                self._moments[key] = str(why)
        found = self._moments[key]
        if isinstance(found, str):
            raise Unsupported(found)
        return found

    @cached_property
    def columns(self) -> EncodedColumns:
        """The encodings of X that serve all settings."""
        return EncodedColumns(self.job)

    def rows_behind(self, steps: Sequence[StepSpec]) -> Rows:
        """The rows that scikit-learn has behind some steps, on the first split."""
        return self.columns.rows_behind(steps) if reads_columns(steps) else DENSE

    def _encoding_behind(self, steps: Sequence[StepSpec]) -> Encoding | None:
        return self.columns.encoding_behind(steps) if reads_columns(steps) else None

    def _rows_of_X(self, encoding: Encoding | None) -> RowSource:
        if encoding is None:
            return self.rows
        if isinstance(encoding, ChunkEncoding):
            return encoding
        # The numbers and codes of all encodings so far, each with a copy in the order of the atoms.
        entries = sum(one.entries_a_row for one in self._encodings | {encoding})
        require_memory(2 * 8 * encoding.shape[0] * entries, self.job.options.memory_limit // 2)
        self._encodings.add(encoding)
        return encoding

    @cached_property
    def rows(self) -> RowSource:
        """The rows of X; raises `Unsupported` if families cannot read them."""
        return as_row_source(self.job.X, self.job.options.memory_limit)

    @property
    def chunks(self) -> ChunkRows | None:
        """The rows of an X that is read in chunks; None for any other X."""
        if isinstance(self.job.X, ChunkRows) or not may_be_in_chunks(self.job.X):
            return self.job.X if isinstance(self.job.X, ChunkRows) else None
        try:
            return self.rows if isinstance(self.rows, ChunkRows) else None
        except Unsupported:
            return None

    def take_passes_predicted(self) -> float:
        """Passes over an X in chunks that predictions took since the last call."""
        if self.chunks is None:
            return 0.0
        passes, self.chunks.passes_predicted = self.chunks.passes_predicted, 0.0
        return passes

    @property
    def bytes_read(self) -> int:
        """Bytes of an X that is read in chunks, as far as they were read."""
        return 0 if self.chunks is None else self.chunks.bytes_read

    def _load(self, labels: bool, encoding: Encoding | None, function: TargetFunction | None) -> FoldedMatrix:
        job, on_device, targets, classes = self.job, is_xp_array(self.job.X), None, None
        X = self._rows_of_X(encoding)
        n = X.shape[0]
        if X.nnz is not None:
            kind = job.X.kind if isinstance(job.X, ChunkRows) else type(job.X).__name__
            raise Unsupported(f"X is a {kind}, not a dense array or DataFrame")
        if labels and on_device:
            raise Unsupported("labels of rows on a device have no moments")
        y = job.y if on_device else job.copy_to_host(job.y, "y")
        y = as_labels(y) if labels else as_targets(y)
        if n != y.shape[0]:
            raise Unsupported("X and y differ in length")
        if labels:
            classes = indicated_classes(y)
            require_memory(8 * n * len(classes), job.options.memory_limit)
            targets = class_indicators(y, classes)
        if function is not None:
            targets = function(y)
        return FoldedMatrix(X, y, job.splits, self._weights(n), job.y, targets, job.copy_to_host, classes)

    def for_iterations(self, estimator: Any, steps: Sequence[StepSpec]) -> FoldedMatrix:
        """X, dense or sparse, and the labels or the one target of an estimator.

        A sparse X in chunks is that before the steps, see `behind`; any other sparse X has no steps.
        """
        in_chunks = self.has_sparse_chunks
        key = labels, encoding = is_classifier(estimator), None if in_chunks else self._encoding_behind(steps)
        if key not in self._iterations:
            try:
                self._iterations[key] = self._rows(labels, encoding)
            except IndexError as why:  # of the splits, which scikit-learn refuses in its own words
                raise Unsupported(str(why)) from None
        data = self._iterations[key]
        if steps and data.X.nnz is not None and not in_chunks:
            raise Unsupported("X is sparse, and steps are seen through moments of dense data only")
        return data

    @property
    def has_sparse_chunks(self) -> bool:
        """Whether X is sparse and read in chunks."""
        return isinstance(self.job.X, ChunkRows) and self.job.X.nnz is not None

    def passes_to_fit(self, steps: Sequence[StepSpec]) -> int:
        """Passes over sparse chunks that the fits of some steps take for each split.

        If they take none, the rows behind the steps are the same on all splits.
        """
        known = ((sparse_step_of(spec.cls), spec) for spec in steps)
        return sum(step is not None and step.reads_rows(spec.build()) for step, spec in known)

    def passes_behind(self, prefixes: Iterable[Sequence[StepSpec]]) -> float:
        """Passes over sparse chunks that count behind some steps, and fit these."""
        total = 0
        for steps in {tuple(spec.key for spec in steps): steps for steps in prefixes if steps}.values():
            n = self.passes_to_fit(steps)
            total += (1 + n) * self.job.splits.n_splits if n else self.job.splits.n_atom_groups
        return float(total)

    def behind(self, steps: Sequence[StepSpec], data: FoldedMatrix, i: int) -> FoldedMatrix:
        """The matrix of sparse chunks behind steps that are fitted to the training rows of split `i`."""
        X = data.X
        train = np.sort(as_rows(data.splits.indices(i)[0], data.X.shape[0]))
        for spec in steps:
            step = spec.build()
            known = sparse_step_of(spec.cls)
            assert known is not None
            X = TransformedRows(X, known.fit(step, X, train))
        return data.with_rows(X)

    def _rows(self, labels: bool, encoding: Encoding | None) -> FoldedMatrix:
        job = self.job
        read_y = as_labels if labels else as_targets
        X, y = self._rows_of_X(encoding), read_y(job.copy_to_host(job.y, "y"))
        require_one_dimension(y)
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

    def moment_passes(self, matrices: Iterable[FoldedMatrix]) -> float:
        """Passes over X that sum moments: one for each matrix, group of atoms and set of weights."""
        sets = 0
        for data in {id(data): data for data in matrices}.values():
            sets += len({id(None), id(data.weights.fit), id(data.weights.score)})
        return float(self.job.splits.n_atom_groups * sets) if sets else 0.0  # splits may be no indices

    def shape(self, data: FoldedMatrix, estimator: Any) -> Shape:
        """The size of one fit, for estimates of cost."""
        k, X = self.job.splits.n_splits, data.X
        n_train = max(1, round(X.shape[0] * (1 - 1 / max(k, 2))))
        entries = round(X.nnz * n_train / X.shape[0]) if X.nnz is not None else None
        # y of a device is copied to the host when it is read.
        classes = n_classes(estimator, data.y) if is_classifier(estimator) else 0
        n_test, codes = X.shape[0] - n_train, X.entries_a_row if isinstance(X, MixedRows) else None
        return Shape(n_train, X.shape[1], data.n_targets, k, classes, entries, n_test, codes)

    def rough_shape(self, estimator: Any) -> Shape:
        """The size of one fit before any step, as far as X tells it."""
        job, n = self.job, self.job.splits.n_samples
        k, p, q = job.splits.n_splits, getattr(job.X, "shape", ())[1:2], getattr(job.y, "shape", ())[1:2]
        n_train = max(1, round(n * (1 - 1 / max(k, 2))))
        if is_classifier(estimator) and self._n_classes is None:
            self._n_classes = n_classes(estimator, as_labels(job.copy_to_host(job.y, "y")))
        return Shape(n_train, p[0] if p else 0, q[0] if q else 1, k, self._n_classes or 0, n_test=n - n_train)
