"""The encoding of X that serves all settings of a search, and which of their steps it serves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from manyfit._compat import own_output_container
from manyfit.families import (
    View,
    affine_step_of,
    apply_step,
    check_output,
    check_step,
    column_step_of,
    moments_behind,
)
from manyfit.folds import EncodedFold, Encoding, FoldColumns, MomentsNeeded, Table, Unsupported
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._pipeline_spec import PipelineReader, StepSpec

# Each split looks at the numbers of a column, and adds ranges, where steps divide it into bins.
MOST_DIVIDED = 50


def reads_columns(steps: Iterable[StepSpec]) -> bool:
    """Whether a step reads the columns of X as they are, so that their moments do not suffice."""
    return any(column_step_of(step.cls) and not affine_step_of(step.cls) for step in steps)


@dataclass(frozen=True)
class _Rows:
    """The rows behind some steps: whether scikit-learn has a sparse matrix, or has rounded to float32."""

    is_sparse: bool
    is_rounded: bool


class EncodedColumns:
    """The columns of X, encoded once for all settings.

    The steps of all settings are applied to the first split, without moments: this shows which columns they
    read, and which of them are linear in these.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        if not job.splits.n_splits:
            raise Unsupported("there are no splits")
        self.encoding = Encoding(Table(job.X))
        self._start = FoldColumns.start(EncodedFold(self.encoding, *job.splits.indices(0)))
        self._found: dict[Any, _Rows | str] = {}  # by key of steps: their rows, or the reason
        reader = PipelineReader(job.estimator)
        for params in job.candidates:
            with suppress(Exception):  # settings that cannot be read have no steps to apply
                self._find(reader.read(params).steps)
        self.encoding.finish_plan()

    def require_linear(self, steps: Sequence[StepSpec]) -> None:
        """Raise `Unsupported` with the reason unless the output of some steps is linear in the columns."""
        found = self._find(steps)
        if isinstance(found, str):
            raise Unsupported(found)

    def is_sparse_behind(self, steps: Sequence[StepSpec]) -> bool:
        """Whether scikit-learn has sparse rows behind steps that are linear."""
        found = self._find(steps)
        return not isinstance(found, str) and found.is_sparse

    def is_rounded_behind(self, steps: Sequence[StepSpec]) -> bool:
        """Whether scikit-learn rounds numbers to float32 in steps that are linear."""
        found = self._find(steps)
        return not isinstance(found, str) and found.is_rounded

    def _find(self, steps: Sequence[StepSpec]) -> _Rows | str:
        key = tuple(step.key for step in steps)
        if key not in self._found:
            try:
                self._found[key] = self._apply(steps)
            except Unsupported as why:
                self._found[key] = str(why)
            except Exception as error:  # of a step that scikit-learn cannot fit either, say
                self._found[key] = f"its columns cannot be read ({type(error).__name__})"
        return self._found[key]

    def _apply(self, steps: Sequence[StepSpec]) -> _Rows:
        """The rows behind some steps; each fold notes how it divides columns."""
        before = self.encoding.n_divisions
        found = _rows_behind(steps, self._start)
        if self.encoding.n_divisions == before:
            return found
        splits = self._job.splits
        if splits.n_splits > MOST_DIVIDED:
            raise Unsupported(f"more than {MOST_DIVIDED} splits divide columns into bins")
        for i in range(1, splits.n_splits):
            with suppress(Exception):  # a fold that cannot be read is left to scikit-learn
                _rows_behind(steps, FoldColumns.start(EncodedFold(self.encoding, *splits.indices(i))))
        return found


def _rows_behind(steps: Sequence[StepSpec], view: View) -> _Rows:
    for step in steps:
        check_step(step.build())
        check_output(step.build(), own_output_container(step.rest))
        try:
            view = apply_step(step.build(), view)
        except MomentsNeeded:
            return _Rows(is_sparse=False, is_rounded=False)
    with suppress(MomentsNeeded):
        moments_behind(view)
    if not isinstance(view, FoldColumns):
        return _Rows(is_sparse=False, is_rounded=False)
    return _Rows(view.is_sparse, view.is_rounded)
