"""Facts about a search that strategies need before anything is fitted."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from manyfit.arrays import is_xp_array
from manyfit.folds import counts_texts, is_row_source, tokens_key
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.job._rowwise_prefix import count_rowwise_steps, is_sequence, saves_work
from manyfit.model_selection.planning._parameter_checks import ParameterChecks
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec
from manyfit.model_selection.planning._search_data import SearchData
from manyfit.model_selection.planning.places._data_location import (
    host_only_estimators,
    may_share_device_rows,
    moves_to_gpu,
)
from manyfit.model_selection.planning.steps._random import DrawingSteps


class SearchFacts:
    """A job with its data, the checks of its parameters, and where its fits may be made."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.data = SearchData(job)
        self.checks = ParameterChecks()
        self.drawing = DrawingSteps(job)

    @property
    def must_share(self) -> bool:
        """Whether scikit-learn cannot read X, which a `RowSource` reads; sharing then need not pay."""
        return is_row_source(self.job.X)

    @cached_property
    def on_device(self) -> bool:
        """Whether X or y lies on a device, or X is to be sent to one."""
        sent = self.job.client is None and moves_to_gpu(self.job.X)
        return sent or is_xp_array(self.job.X) or is_xp_array(self.job.y)

    @cached_property
    def may_share_rows(self) -> bool:
        """Whether several fits may read the same rows, which scikit-learn can cut."""
        return not (self.must_share or (self.on_device and not may_share_device_rows(self.job)))

    @cached_property
    def fits_on_device(self) -> bool:
        return (
            self.on_device
            and not host_only_estimators(self.job)
            and (is_xp_array(self.job.X) or moves_to_gpu(self.job.X))
        )

    def n_rowwise_steps(self, spec: PipelineSpec) -> int:
        """How many steps, from the first one, are applied to all rows at once; on a cluster none."""
        if not self._reads_all_rows:
            return 0
        found = count_rowwise_steps((step.build() for step in spec.steps), self.job.X)
        return found if found and self._rowwise_saves_work else 0

    def tokens_key(self, spec: PipelineSpec) -> Hashable | None:
        """The key of the tokens that a first step makes of all texts once; None where it makes none."""
        if not (self._reads_all_rows and spec.steps and is_sequence(self.job.X)):
            return None
        first = spec.steps[0].build()
        return tokens_key(first) if counts_texts(first) and self._rowwise_saves_work else None

    def done_once(self, spec: PipelineSpec) -> tuple[str, ...]:
        """The work on all rows at once, in words."""
        rowwise = spec.steps[: self.n_rowwise_steps(spec)]
        if self.tokens_key(spec) is not None:
            return (f"tokens of {spec.steps[0].cls.__name__}",)
        return tuple(step.cls.__name__ for step in rowwise)

    @property
    def _reads_all_rows(self) -> bool:
        return self.job.client is None and not self.on_device

    @cached_property
    def _rowwise_saves_work(self) -> bool:
        return saves_work(self.job.splits)
