"""The part of the moment strategy that takes many small folds out of one fit of all rows."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyfit.families import LeavesOut, LeftOut
from manyfit.folds import Array, FoldedMatrix, Unsupported
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.job._job import Options
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._score_answers import LOST_DIGITS, score_on_host
from manyfit.model_selection.strategies._strategy import RunContext

# Predictions that differ by less than this, relative to the targets, may tie but for rounding.
TIE = 1e-9


def leaves_out(group: Group, data: FoldedMatrix, shape: Any, options: Options) -> bool:
    """Whether the fits of a group follow from one fit of all rows, with fewer operations."""
    family = group.family
    return (
        isinstance(family, LeavesOut)
        and not group.steps
        and data.divides_rows
        and (data.classes is None or data.trains_on_all_classes)
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
        outcome.leave(left, error)
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
            table = np.stack([known[name] for name in self._scoring.named])
            finite = np.isfinite(table).all(axis=0) & ~self._lost
            times = fit_seconds / n, (time.perf_counter() - start) / n
            note_scores(
                self._scoring, table.swapaxes(1, 2), finite.T, self._group.candidates, self._splits, times,
                self.outcome,
            )  # fmt: skip
        for place, i in enumerate(self._splits):
            if not finite[place].all():
                self._score_split(place, i, finite[place], fit_seconds / n)

    def _score_split(self, place: int, i: int, known: Array, fit_time: float) -> None:
        """Score what is not known of one split from predictions."""
        family, group = self._group.family, self._group
        lost = self._lost[place]
        if not known.any() and _nearly_tie(self._targets[place], self._residuals[place][:, ~lost]):
            self._ties.add(i)
            return
        self.outcome.leave([(group.candidates[j], i) for j in np.flatnonzero(lost)], LOST_DIGITS)
        rest = np.flatnonzero(~known & ~lost)
        if not rest.size:
            return
        candidates = [group.candidates[j] for j in rest]
        predicted = (self._targets[place][:, None] - self._residuals[place][:, rest]).transpose(1, 0, 2)
        assert isinstance(family, LeavesOut)
        try:
            answers = family.answers_of(predicted, self._data.single_target, self._data.classes)
        except Exception as error:
            self.outcome.leave([(c, i) for c in candidates], error)
            return
        score_on_host(
            self._scoring, answers, candidates, self._data, i, self._options, fit_time, self.outcome
        )


def _nearly_tie(targets: Array, residuals: Array) -> bool:
    """Whether predictions of two rows differ by no more than rounding, for some setting and target.

    Predictions of equal rows are then not equal, as those of a fit are, since their targets differ: metrics
    that rank rows would tell.
    """
    ordered = np.sort(targets[:, np.newaxis] - residuals, axis=0)
    return bool((np.diff(ordered, axis=0) <= TIE * max(1.0, float(np.abs(targets).max(initial=0.0)))).any())


def note_scores(
    scoring: SharedScoring,
    table: Array,
    known: Array,
    candidates: Sequence[int],
    splits: Sequence[int],
    times: tuple[float, float],
    outcome: TaskResult,
) -> None:
    """Note results of many splits: of `table`, (n_scorers, n_settings, n_splits), those that are `known`."""
    names, by_name = list(scoring.named), scoring.multimetric
    for j, c in enumerate(candidates):
        columns = table[:, j].tolist()
        for k in np.flatnonzero(known[j]).tolist():
            values = [column[k] for column in columns]
            outcome.results[c, splits[k]] = {
                "fit_error": None,
                "test_scores": dict(zip(names, values, strict=True)) if by_name else values[0],
                "fit_time": times[0],
                "score_time": times[1],
            }
