"""The encoding of X that serves all settings of a search, and which of their steps it serves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

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


def reads_columns(steps: Iterable[StepSpec]) -> bool:
    """Whether a step reads the columns of X as they are, so that their moments do not suffice."""
    return any(column_step_of(step.cls) and not affine_step_of(step.cls) for step in steps)


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
        self._found: dict[Any, bool | str] = {}  # by key of steps: whether rows are sparse, or the reason
        reader = PipelineReader(job.estimator)
        for params in job.candidates:
            with suppress(Exception):  # settings that cannot be read have no steps to apply
                self._find(reader.read(params).steps)

    def require_linear(self, steps: Sequence[StepSpec]) -> None:
        """Raise `Unsupported` with the reason unless the output of some steps is linear in the columns."""
        found = self._find(steps)
        if isinstance(found, str):
            raise Unsupported(found)

    def is_sparse_behind(self, steps: Sequence[StepSpec]) -> bool:
        """Whether scikit-learn has sparse rows behind steps that are linear."""
        return self._find(steps) is True

    def _find(self, steps: Sequence[StepSpec]) -> bool | str:
        key = tuple(step.key for step in steps)
        if key not in self._found:
            try:
                self._found[key] = _is_sparse(steps, self._start)
            except Unsupported as why:
                self._found[key] = str(why)
            except Exception as error:  # of a step that scikit-learn cannot fit either, say
                self._found[key] = f"its columns cannot be read ({type(error).__name__})"
        return self._found[key]


def _is_sparse(steps: Sequence[StepSpec], view: View) -> bool:
    for step in steps:
        check_step(step.build())
        check_output(step.build(), step.rest.get("_sklearn_output_config", {}).get("transform"))
        try:
            view = apply_step(step.build(), view)
        except MomentsNeeded:
            return False
    is_sparse = isinstance(view, FoldColumns) and view.is_sparse
    with suppress(MomentsNeeded):
        moments_behind(view)
    return is_sparse
