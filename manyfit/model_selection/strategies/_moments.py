"""Runs the groups that moments serve: one fold after the other, down the tree of steps."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.arrays import retry_in_smaller_blocks, to_host_together
from manyfit.estimators import LinearAnswers, affine_step_of
from manyfit.folds import Fold, FoldedMatrix, Moments, TransformedMoments, Unsupported
from manyfit.metrics import LinearPredictors, Rounding, SharedScoring
from manyfit.model_selection.job._job import Job, Options
from manyfit.model_selection.planning._pipeline_spec import StepSpec
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._score_answers import PendingScores, begin_scores

Array = NDArray[Any]


@dataclass
class _Node:
    """Settings behind the same steps: the groups that end here and the steps that go on."""

    step: StepSpec | None = None
    children: dict[Any, "_Node"] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def insert(self, group: Group) -> None:
        node = self
        for step in group.steps:
            node = node.children.setdefault(step.key, _Node(step))
        node.groups.append(group)

    def all_groups(self) -> list[Group]:
        return self.groups + [g for child in self.children.values() for g in child.all_groups()]


@dataclass(frozen=True)
class _OneView:
    """Folded data of a single fold whose moments went through some steps."""

    data: FoldedMatrix
    i: int
    seen: TransformedMoments
    n_splits: int = 1

    def view(self, i: int) -> TransformedMoments:
        return self.seen

    def fold(self, i: int) -> Fold:
        raise TypeError("A family that needs moments asked for rows, which the steps before it did not see.")

    def scoring_moments(self, i: int, role: str) -> Moments:
        return self.data.scoring_moments(self.i, role)


def run_moments(
    job: Job,
    groups: Sequence[Group],
    data: FoldedMatrix,
    scoring: SharedScoring,
    arrivals: ResultSink,
) -> TaskResult:
    """Answer all settings of `groups` on all folds.

    One pass over X a group of atoms; the memory of one fold's views and answers at a time. Of a device,
    answers of as many folds are kept as take an eighth of the memory limit: one synchronisation for these.
    """
    # All groups of a fold are one batch, whose size may move the last bit: so all are restored, or none.
    if arrivals.restore(job.pairs([c for group in groups for c in group.candidates])):
        return TaskResult()
    root = _Node()
    for group in groups:
        root.insert(group)
    outcome = TaskResult()
    start = time.perf_counter()
    waiting: list[_Fold] = []

    def settle() -> None:
        home = to_host_together(*(table for fold in waiting for table in fold.there), label="scores")
        for fold in waiting:
            own, home = home[: len(fold.there)], home[len(fold.there) :]
            fold.finish(own)
            outcome.add(fold.outcome)
            arrivals.add(fold.outcome.results, alone=False)
        waiting.clear()

    for i in range(data.n_splits):
        fold = _Fold(job.options, data, scoring, i)
        fold.run(root)
        waiting.append(fold)
        # Scores that lie on a device come home together, for as many folds as may be kept until then.
        if not fold.there or sum(one.held for one in waiting) > job.options.memory_limit // 8:
            settle()
    settle()
    outcome.seconds = time.perf_counter() - start
    return outcome


class _Fold:
    """One fold of a run."""

    def __init__(self, options: Options, data: FoldedMatrix, scoring: SharedScoring, i: int) -> None:
        self.options, self.data, self.scoring, self.i = options, data, scoring, i
        self.outcome = TaskResult()
        self.linear: list[tuple[tuple[int, ...], LinearAnswers]] = []
        self._begun: list[tuple[list[int], float, PendingScores]] = []
        self.held = 0  # bytes of the host, until it is finished

    @property
    def there(self) -> list[Any]:
        """What waits on a device, see `PendingScores`."""
        return [table for _, _, begun in self._begun for table in begun.there]

    def run(self, root: _Node) -> None:
        start = time.perf_counter()
        try:
            view = retry_in_smaller_blocks(
                lambda: self.data.view(self.i), lambda: f"the moments of {_titles(root)}"
            )
            self._walk(root, view)
        except Exception as error:
            self._leave(root, why_not(error))
        for flat in (False, True):
            parts = [part for part in self.linear if part[1].flat == flat]
            if parts:
                self._begin(parts, start)
                start = time.perf_counter()

    def _begin(self, parts: Sequence[tuple[tuple[int, ...], LinearAnswers]], start: float) -> None:
        """Begin to score some answers of the same shape as one batch."""
        candidates, answers = _joined(parts)
        fitted = time.perf_counter() - start
        try:
            begun = retry_in_smaller_blocks(
                lambda: begin_scores(self.scoring, answers, len(candidates), self.data, self.i, self.options),
                lambda: f"the scores of {len(candidates)} settings",
            )
        except Exception as error:
            self.outcome.alone.update({(c, self.i): why_not(error) for c in candidates})
            return
        self._begun.append((candidates, fitted, begun))
        d = self.data.X.shape[1] + self.data.n_targets
        # The answers, apart and joined, and the moments of both roles.
        self.held += 2 * answers.linear.coef.nbytes + 2 * 8 * d * d

    def finish(self, home: Sequence[Array]) -> None:
        """Note all scores, given what `there` was brought home as."""
        for candidates, fitted, begun in self._begun:
            own, home = home[: len(begun.there)], home[len(begun.there) :]
            start, n = time.perf_counter(), len(candidates)
            try:
                scored = begun.finish(own)
            except Exception as error:
                self.outcome.alone.update({(c, self.i): why_not(error) for c in candidates})
                continue
            times = (fitted / n, (begun.seconds + time.perf_counter() - start) / n)
            scored.keep(self.outcome, candidates, self.i, times)

    def _walk(self, node: _Node, view: TransformedMoments) -> None:
        for group in node.groups:
            assert group.family is not None
            try:
                folded = _OneView(self.data, self.i, view)
                answers = next(iter(group.family.fit_many(group.prototype, group.settings, folded)))
            except Exception as error:
                self._leave(_Node(groups=[group]), why_not(error))
                continue
            if isinstance(answers, LinearAnswers):
                self.linear.append((group.candidates, answers))
            else:
                why = f"{type(group.family).__name__} needs moments and has to give LinearAnswers"
                self._leave(_Node(groups=[group]), f"{why}, not {type(answers).__name__}")
        for child in node.children.values():
            assert child.step is not None
            try:
                step = affine_step_of(child.step.cls)
                assert step is not None
                self._walk(child, step.apply(child.step.build(), view))
            except Exception as error:
                self._leave(child, why_not(error))

    def _leave(self, node: _Node, why: str) -> None:
        for group in node.all_groups():
            self.outcome.alone.update({(c, self.i): why for c in group.candidates})


def _titles(root: _Node) -> str:
    return ", ".join(dict.fromkeys(group.estimator for group in root.all_groups()))


def why_not(error: Exception) -> str:
    """The reason that an exception in shared work gives; scikit-learn fits the pairs instead."""
    return str(error) if isinstance(error, Unsupported) else f"shared work failed ({type(error).__name__})"


def _joined(parts: Sequence[tuple[tuple[int, ...], LinearAnswers]]) -> tuple[list[int], LinearAnswers]:
    """The answers of some groups of a fold as one batch: they share the columns of X."""
    candidates: list[int] = []
    alone: dict[int, str] = {}
    for members, answers in parts:
        alone.update({len(candidates) + j: why for j, why in answers.alone.items()})
        candidates += members
    linear = [answers.linear for _, answers in parts]
    joined = LinearPredictors(
        np.concatenate([one.coef for one in linear], axis=1),
        np.concatenate([one.at_origin for one in linear]),
        linear[0].origin,
    )
    roundings = [r for _, one in parts for r in one.roundings or (Rounding.none(one.linear),)]
    return candidates, LinearAnswers(joined, alone, tuple(roundings), parts[0][1].flat)
