"""The strategy for moments: one fold after the other, down the tree of steps."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import is_classifier

from manyfit.arrays import retry_in_smaller_blocks, to_host_together
from manyfit.families import (
    Family,
    LinearAnswers,
    MomentSums,
    View,
    apply_step,
    moments_behind,
    require_valid_answers,
    target_function,
)
from manyfit.folds import (
    Array,
    Fold,
    FoldedMatrix,
    Moments,
    StepNotes,
    TransformedMoments,
    Unsupported,
    is_row_source,
)
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._cost_checks import require_cheaper, require_memory
from manyfit.model_selection.planning._parameter_checks import check_affine_step, check_reads_no_labels
from manyfit.model_selection.planning._pipeline_spec import StepSpec
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._search_data import SearchData
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._left_out_rows import answer_left_out, leaves_out
from manyfit.model_selection.strategies._score_answers import PendingScores, start_scores
from manyfit.model_selection.strategies._strategy import Batch, DataStrategy, RunContext

_Part = tuple[tuple[int, ...], LinearAnswers]


@dataclass
class _StepTree:
    """Settings behind the same steps: the groups that end here and the steps that go on."""

    step: StepSpec | None = None
    children: dict[Any, "_StepTree"] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def insert(self, group: Group) -> None:
        node = self
        for step in group.steps:
            node = node.children.setdefault(step.key, _StepTree(step))
        node.groups.append(group)

    def without(self, answered: Iterable[tuple[int, ...]]) -> "_StepTree":
        """The same tree, without the groups of some candidates that have no step before them."""
        done = set(answered)
        left = [group for group in self.groups if group.candidates not in done]
        return _StepTree(self.step, self.children, left)

    @property
    def is_empty(self) -> bool:
        return not self.groups and not self.children

    def all_groups(self) -> list[Group]:
        return self.groups + [g for child in self.children.values() for g in child.all_groups()]


@dataclass(frozen=True)
class ViewedFold:
    """Folded data of a single fold whose moments went through some steps."""

    data: FoldedMatrix
    i: int
    seen: TransformedMoments
    n_splits: int = 1

    def view(self, i: int) -> TransformedMoments:
        return self.seen

    def fold(self, i: int) -> Fold:
        raise TypeError("A family that needs moments asked for rows, which the steps before it did not see.")

    def fitted_targets(self, i: int) -> Array:
        return self.data.fitted_targets(self.i)

    def scoring_moments(self, i: int, role: str) -> Moments:
        return self.data.scoring_moments(self.i, role)

    @property
    def classes(self) -> Array | None:
        return self.data.classes_of(self.i)


@dataclass(frozen=True)
class MomentStrategy(DataStrategy):
    """Affine steps and a family that reads moments: one pass over X answers all settings on all folds."""

    kind = "moments"
    title = "shared through moments"
    last_step_place = ("host", "it works on the moments, which are small")

    def matches(self, batch: Batch) -> bool:
        return batch.family is not None and isinstance(batch.family.reads, MomentSums) and batch.is_affine

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        group, scoring = self.group_of(batch, facts)
        facts.checks.require(batch.spec, check_affine_step)
        if is_classifier(group.prototype):
            facts.checks.require(batch.spec, check_reads_no_labels)
        data = moment_data(group, facts.data)
        assert batch.family is not None
        rows = facts.data.rows_behind(group.steps)
        require_dense(batch.family, rows.is_sparse)
        if rows.is_sparse and rows.is_rounded:
            raise Unsupported("the rows behind the steps are sparse, and rounded to float32")
        shape = facts.data.shape(data, group.prototype)
        if rows.is_sparse and shape.row_entries is not None:
            shape = replace(shape, n_entries=shape.n_train * shape.row_entries)
        one_fit = leaves_out(group, data, shape, facts.job.options)
        needed = data.whole_moment_bytes if one_fit else data.moment_bytes
        require_memory(needed, facts.job.options.memory_limit)
        if not facts.must_share:
            require_cheaper(group, shape, facts.job)
        if scoring.by_itself and not scoring.reads_moments and not is_classifier(group.prototype):
            raise Unsupported("a score of its own is not had from moments")
        return group

    def answer(self, groups: Sequence[Group], context: RunContext, outcome: TaskResult) -> None:
        """See `DataStrategy`. Regressors, classifiers and encoded columns have moments of their own."""
        scorings = {group.candidates: context.scoring_of(group) for group in groups}
        trees: dict[int, tuple[FoldedMatrix, _StepTree]] = {}
        for group in groups:
            own = moment_data(group, context.data)
            trees.setdefault(id(own), (own, _StepTree()))[1].insert(group)
        for data, root in trees.values():
            _run_folds(root, data, scorings, outcome, context)


MOMENTS = MomentStrategy()


def moment_data(group: Group, data: SearchData) -> FoldedMatrix:
    """The matrix whose moments a group reads: settings have one in common as far as their steps allow."""
    return data.for_moments(group.prototype, group.steps, target_function(group.family))


def _run_folds(
    root: _StepTree,
    data: FoldedMatrix,
    scorings: Mapping[tuple[int, ...], SharedScoring],
    outcome: TaskResult,
    context: RunContext,
) -> None:
    """Answer and score one fold after the other, and all settings of a fold together.

    Scores on a device are fetched together for as many folds as fit in an eighth of the memory limit.
    """
    passes_before, options = data.passes, context.job.options
    answered: dict[tuple[int, ...], set[int]] = {}
    for group in root.groups:
        shape = context.data.shape(data, group.prototype)
        if leaves_out(group, data, shape, options):
            scoring = scorings[group.candidates]
            answered[group.candidates] = answer_left_out(group, data, scoring, outcome, context)
    waiting: list[_PendingFold] = []
    for i in range(data.n_splits):
        rest = root.without(done for done, splits in answered.items() if i in splits) if answered else root
        if rest.is_empty:
            continue
        fold = _PendingFold(context.job, data, scorings, i)
        fold.run(rest)
        waiting.append(fold)
        if not fold.device_scores or sum(one.held for one in waiting) > options.memory_limit // 8:
            _finish(waiting, outcome, context)
    _finish(waiting, outcome, context)
    outcome.rows_read += round((data.passes - passes_before) * context.job.splits.n_samples)


def _finish(waiting: list["_PendingFold"], outcome: TaskResult, context: RunContext) -> None:
    """Fetch the scores of some folds from the device, and hand them on."""
    tables = (table for fold in waiting for table in fold.device_scores)
    on_host = iter(to_host_together(*tables, label="scores"))
    for fold in waiting:
        fold.finish(on_host)
        outcome.add(fold.outcome)
        context.add(fold.outcome.results, individual=False)
    waiting.clear()


class _PendingFold:
    def __init__(
        self, job: Job, data: FoldedMatrix, scorings: Mapping[tuple[int, ...], SharedScoring], i: int
    ) -> None:
        self.options, self.data, self.scorings, self.i = job.options, data, scorings, i
        self._sklearn_reads = not is_row_source(job.X)
        self.outcome = TaskResult()
        # Answers of one shape, scored alike, are scored as one batch.
        self.linear: dict[Any, tuple[SharedScoring, list[_Part], StepNotes]] = {}
        self._pending: list[tuple[list[int], float, PendingScores]] = []
        self.held = 0  # bytes of the host, until it is finished

    @property
    def device_scores(self) -> list[Any]:
        """Arrays that wait on a device, see `PendingScores`."""
        return [table for _, _, pending in self._pending for table in pending.device_scores]

    def run(self, root: _StepTree) -> None:
        start = time.perf_counter()
        try:
            require_memory(self.data.moment_bytes, self.options.memory_limit)
            view = retry_in_smaller_blocks(
                lambda: self.data.start(self.i), lambda: f"the moments of {_titles(root)}"
            )
            self._walk(root, view)
        except Exception as error:
            self._leave(root, error)
        for key in sorted(self.linear, key=lambda key: bool(key[0][0])):
            self._start_batch(*self.linear[key], start)
            start = time.perf_counter()

    def _start_batch(
        self, scoring: SharedScoring, parts: Sequence["_Part"], notes: StepNotes, start: float
    ) -> None:
        """Begin to score some answers of the same shape as one batch; see `start_scores`."""
        candidates = [c for members, _ in parts for c in members]
        answers = LinearAnswers.joined([one for _, one in parts])
        fitted = time.perf_counter() - start
        try:
            pending = retry_in_smaller_blocks(
                lambda: start_scores(
                    scoring, answers, len(candidates), self.data, self.i, self.options, notes
                ),
                lambda: f"the scores of {len(candidates)} settings",
            )
        except Exception as error:
            self.outcome.leave([(c, self.i) for c in candidates], error)
            return
        self._pending.append((candidates, fitted, pending))
        d = self.data.X.shape[1] + self.data.n_targets
        # The answers, apart and joined, and the moments of both roles.
        self.held += 2 * answers.linear.coef.nbytes + 2 * 8 * d * d

    def finish(self, on_host: Iterator[Array]) -> None:
        """Note all scores; `on_host` begins with what `device_scores` became on the host."""
        for candidates, fitted, pending in self._pending:
            start, n = time.perf_counter(), len(candidates)
            try:
                scored = pending.finish(on_host)
            except Exception as error:
                self.outcome.leave([(c, self.i) for c in candidates], error)
                continue
            times = (fitted / n, (pending.seconds + time.perf_counter() - start) / n)
            scored.keep(self.outcome, candidates, self.i, times)

    def _walk(self, node: _StepTree, view: View) -> None:
        for group in node.groups:
            assert group.family is not None
            try:
                seen = moments_behind(view)
                require_dense(group.family, seen.is_sparse)
                folded = ViewedFold(self.data, self.i, seen)
                answers = next(iter(group.family.fit_many(group.prototype, group.settings, folded)))
                if isinstance(answers, LinearAnswers):
                    q = seen.plain.y_mean.size
                    require_valid_answers(
                        group.family, answers, len(group.candidates), seen.origin.size, q,
                        lambda: self.data.fold(self.i),
                    )  # fmt: skip
            except Exception as error:
                self._leave(_StepTree(groups=[group]), error)
                continue
            if isinstance(answers, LinearAnswers):
                if not self._sklearn_reads:
                    refused = {j: why for j, why in answers.refused.items() if j not in answers.as_good}
                    answers = replace(answers, refused=refused)
                scoring = self.scorings[group.candidates]
                own_score = (type(group.prototype), type(group.wrapper)) if scoring.by_itself else None
                key = answers.alike, own_score, seen.notes
                self.linear.setdefault(key, (scoring, [], seen.notes))[1].append((group.candidates, answers))
            else:
                why = f"{type(group.family).__name__} reads moments, and has to give LinearAnswers"
                self._leave(_StepTree(groups=[group]), f"{why}, not {type(answers).__name__}")
        for child in node.children.values():
            assert child.step is not None
            try:
                self._walk(child, apply_step(child.step.build(), view))
            except Exception as error:
                self._leave(child, error)

    def _leave(self, node: _StepTree, why: Exception | str) -> None:
        self.outcome.leave([(c, self.i) for group in node.all_groups() for c in group.candidates], why)


def _titles(root: _StepTree) -> str:
    return ", ".join(dict.fromkeys(group.estimator for group in root.all_groups()))


def require_dense(family: Family, is_sparse: bool) -> None:
    """Raise `Unsupported` if the rows behind the steps are sparse, and a family answers for dense ones."""
    if is_sparse and not (isinstance(family.reads, MomentSums) and family.reads.sparse):
        raise Unsupported("the rows behind the steps are sparse, for which the estimator has another solver")
