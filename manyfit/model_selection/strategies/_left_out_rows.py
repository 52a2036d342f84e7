"""Groups of moments whose fits without some rows follow from one fit of all rows."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from manyfit.families import LeavesOut, LeftOut
from manyfit.folds import Array, FoldedMatrix, Unsupported
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.job._job import Options
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._score_answers import LOST_DIGITS, start_scores
from manyfit.model_selection.strategies._strategy import RunContext, leave, refusal_reason

# Predictions that differ by less than this, relative to the targets, may tie but for rounding.
TIE = 1e-9


def leaves_out(group: Group, data: FoldedMatrix, shape: Any, options: Options) -> bool:
    """Whether the fits of a group follow from one fit of all rows, with fewer operations."""
    family = group.family
    return (
        isinstance(family, LeavesOut)
        and not group.steps
        and data.divides_rows
        and not options.return_train_score
        and not (options.recording is not None and options.recording.every)
        and family.leaves_out(group.prototype, group.settings, shape)
    )


def answer_left_out(
    group: Group, data: FoldedMatrix, scoring: SharedScoring, outcome: TaskResult, context: RunContext
) -> set[int]:
    """Answer a group where rows can be left out of one fit; return the splits that it answered or refused.

    Results go to the context; `outcome` gets them too.
    """
    family, answered = group.family, set[int]()
    assert isinstance(family, LeavesOut)
    start = time.perf_counter()
    try:
        # Weighted fits give weighted squares, which no score reads.
        squares = scoring.reads_squares and data.weights.fit is None
        for block in family.leave_out(group.prototype, group.settings, data, squares):
            part = _Block(group, data, scoring, block, context.job.options)
            part.score(time.perf_counter() - start)
            outcome.add(part.outcome)
            context.add(part.outcome.results, individual=False)
            answered |= part.answered
            start = time.perf_counter()
    except Unsupported:
        return answered  # the others are answered from moments of their training sets, or say why not
    except Exception as error:
        left = [(c, i) for c in group.candidates for i in range(data.n_splits) if i not in answered]
        leave(outcome, left, refusal_reason(error))
        answered = set(range(data.n_splits))
    return answered


class _Block:
    """The answers of a group on some splits."""

    def __init__(
        self, group: Group, data: FoldedMatrix, scoring: SharedScoring, block: LeftOut, options: Options
    ) -> None:
        self._group, self._data, self._scoring, self._options = group, data, scoring, options
        self.outcome = TaskResult()
        own = ~block.merged.any(axis=1)
        self._splits, self._lost = block.splits[own].tolist(), block.lost[own]
        self._residuals, self._targets = block.residuals[own], block.targets[own]
        self._ties = set[int]()  # splits that the moments of their training sets have to answer

    @property
    def answered(self) -> set[int]:
        """The splits of which all settings are answered or refused."""
        return set(self._splits) - self._ties

    def score(self, fit_seconds: float) -> None:
        """Score all settings; `fit_seconds` is what the answers took."""
        start, n = time.perf_counter(), max(len(self._splits) * len(self._group.candidates), 1)
        known = self._scoring.from_residuals(self._residuals, self._targets)
        finite = np.zeros_like(self._lost)
        if known is not None:
            finite = np.isfinite(np.stack(list(known.values()))).all(axis=0) & ~self._lost
            times = fit_seconds / n, (time.perf_counter() - start) / n
            self._note(known, finite, times)
        for place, i in enumerate(self._splits):
            if not finite[place].all():
                self._score_split(place, i, finite[place], fit_seconds / n)

    def _note(self, known: Mapping[str, Array], finite: Array, times: tuple[float, float]) -> None:
        """Results of all pairs whose scores are known."""
        multimetric, (fit_time, score_time) = self._scoring.multimetric, times
        results, everything = self.outcome.results, finite.all()
        tables = {name: table.T.tolist() for name, table in known.items()}
        for j, c in enumerate(self._group.candidates):
            columns = [table[j] for table in tables.values()]
            for place, i in enumerate(self._splits):
                if everything or finite[place, j]:
                    values = [column[place] for column in columns]
                    results[c, i] = {
                        "fit_error": None,
                        "test_scores": dict(zip(tables, values, strict=True)) if multimetric else values[0],
                        "fit_time": fit_time,
                        "score_time": score_time,
                    }

    def _score_split(self, place: int, i: int, known: Array, fit_time: float) -> None:
        """Score what is not known of one split from predictions."""
        start, family, group = time.perf_counter(), self._group.family, self._group
        lost = self._lost[place]
        if not known.any() and _nearly_tie(self._targets[place], self._residuals[place][:, ~lost]):
            self._ties.add(i)
            return
        self.outcome.refused.update(
            {(group.candidates[j], i): LOST_DIGITS for j in map(int, np.flatnonzero(lost))}
        )
        rest = np.flatnonzero(~known & ~lost)
        if not rest.size:
            return
        candidates = [group.candidates[j] for j in rest]
        predicted = (self._targets[place][:, None] - self._residuals[place][:, rest]).transpose(1, 0, 2)
        assert isinstance(family, LeavesOut)
        try:
            answers = family.answers_of(predicted, self._data.single_target, self._data.classes)
            scored = start_scores(self._scoring, answers, len(rest), self._data, i, self._options).finish([])
        except Exception as error:
            self.outcome.refused.update({(c, i): refusal_reason(error) for c in candidates})
            return
        scored.keep(self.outcome, candidates, i, (fit_time, (time.perf_counter() - start) / len(rest)))


def _nearly_tie(targets: Array, residuals: Array) -> bool:
    """Whether predictions of two rows differ by no more than rounding, for some setting and target.

    Predictions of equal rows are then not equal, as those of a fit are, since their targets differ: metrics
    that rank rows would tell.
    """
    ordered = np.sort(targets[:, np.newaxis] - residuals, axis=0)
    return bool((np.diff(ordered, axis=0) <= TIE * max(1.0, float(np.abs(targets).max(initial=0.0)))).any())
