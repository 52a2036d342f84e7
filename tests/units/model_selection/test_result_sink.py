"""Results of a part are counted, and written, as shared or as fitted one by one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult

SHARED, FITTED = (0, 0), (0, 1)


@pytest.mark.parametrize("individual", [False, True])
def test_a_part_says_which_of_its_results_are_individual_fits(individual):
    written = {}

    def add(results, individual, versions):
        written.update(dict.fromkeys(results, individual))

    job = SimpleNamespace(candidates=[{}], splits=SimpleNamespace(n_splits=2))
    sink = ResultSink(job, SimpleNamespace(add=add), bar=Progress(2, 0))
    part = TaskResult({SHARED: {"test_scores": 1.0}, FITTED: {"test_scores": 2.0}}, fitted={FITTED})
    part.work["transformer_fits_saved"] = 3
    sink.take(part, individual=individual)
    assert written == {SHARED: individual, FITTED: True}
    assert sink.shared == (set() if individual else {SHARED})
    assert sink.results == part.results and sink.steps_saved == 3
