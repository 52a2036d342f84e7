"""The strategy for sums within classes: one pass over X for all folds, then one fold after the other."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.arrays import is_xp_array
from manyfit.families import ClassSums, require_valid_answers
from manyfit.folds import ChunkRows, ClassedFolds, Unsupported
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.planning._cost_checks import require_cheaper, require_memory
from manyfit.model_selection.planning._parameter_checks import check_sparse_step
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._score_answers import score_on_host
from manyfit.model_selection.strategies._strategy import Batch, DataStrategy, RunContext, nothing_in_common


@dataclass(frozen=True)
class ClassMomentStrategy(DataStrategy):
    """A family that reads sums within classes: one pass answers all folds.

    Of sparse chunks there may be steps before it, whose fit decides the rows of each fold: it takes passes of
    its own.
    """

    kind = "class moments"
    title = "shared through sums within classes"
    refuses_alone = True
    last_step_place = ("host", "its sums within classes are made on the host")

    def matches(self, batch: Batch) -> bool:
        may_have_steps = batch.is_sparse
        return (
            batch.family is not None
            and isinstance(batch.family.reads, ClassSums)
            and (may_have_steps or not batch.spec.steps)
        )

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        job, options = facts.job, facts.job.options
        if is_xp_array(job.X):
            raise Unsupported("X lies on a device")
        assert batch.family is not None
        reads = batch.family.reads
        assert isinstance(reads, ClassSums)
        if reads.counts and not isinstance(job.X, ChunkRows):
            # The usual way of rows in memory is another, and the plan has nothing to say of this one.
            raise Unsupported("counts are summed of sparse chunks only" if facts.must_share else "")
        if (options.fit_params or options.score_params) and not isinstance(job.X, ChunkRows):
            raise Unsupported("sums within classes have no weights")
        if len(batch.candidates) < 2 and not facts.must_share:
            raise Unsupported(nothing_in_common(batch))
        if options.fit_params and not reads.weights:
            raise Unsupported(f"{batch.spec.final.cls.__name__}.fit takes no sample_weight")
        if batch.spec.steps:
            facts.checks.require(batch.spec, check_sparse_step, True)
        group, scoring = self.group_of(batch, facts)
        data = facts.data.for_iterations(group.prototype, ())
        if reads.counts:
            if data.X.nnz is None:
                name = batch.spec.final.cls.__name__
                raise Unsupported(f"{name} reads sparse chunks, as scipy.sparse.csr_array(block) makes them")
        elif data.X.nnz is not None:
            raise Unsupported("X is sparse")
        elif data.X.dtype == np.float32:
            raise Unsupported("scikit-learn rounds to float32")
        shape = facts.data.shape(data, group.prototype)
        if reads.counts:  # of each split, and not of each atom
            n_sets = max(len(one.splits) for one in job.splits.atom_groups) * shape.n_classes
        else:
            n_sets = min(job.splits.most_atoms * shape.n_classes, data.X.shape[0])
        width = shape.n_features ** (2 if reads.products else 1)
        what = "counts" if reads.counts else "moments"
        require_memory(2 * 8 * n_sets * width, options.memory_limit, what)
        if isinstance(data.X, ChunkRows):
            # Those of one setting: labels alone, or a number for each class.
            only_labels = not reads.products and scoring.gives_all_scores(("predict",))
            n_rows = max(shape.n_test, shape.n_train if options.return_train_score else 0)
            nbytes = 2 * 8 * n_rows * (1 if only_labels and options.recording is None else shape.n_classes)
            require_memory(nbytes, options.memory_limit, "the predictions of a fold")
        if not facts.must_share:
            require_cheaper(group, shape, job)
        return group

    def answer(self, groups: Sequence[Group], context: RunContext, outcome: TaskResult) -> None:
        scorings = {group.candidates: context.scoring_of(group) for group in groups}
        data = context.data.for_iterations(groups[0].prototype, ())  # the same for all groups
        for together in _by_sums(groups):
            steps = together[0].steps
            passes = context.data.passes_to_fit(steps) if steps else 0
            folds = ClassedFolds(data)
            if steps and not passes:
                folds = ClassedFolds(context.data.behind(steps, data, 0))
            n = context.job.splits.n_samples
            for i in range(data.n_splits):
                if passes:
                    try:
                        folds = ClassedFolds(context.data.behind(steps, data, i), alone=True)
                    except Exception as error:
                        outcome.leave([(c, i) for group in together for c in group.candidates], error)
                        continue
                for group in together:
                    _answer(group, scorings[group.candidates], i, folds, context, outcome)
                outcome.rows_read += round((passes + folds.passes) * n) if passes else 0
            outcome.rows_read += 0 if passes else round(folds.passes * n)


CLASS_MOMENTS = ClassMomentStrategy()


def _by_sums(groups: Sequence[Group]) -> list[list[Group]]:
    """Groups that read the same sums, behind the same steps.

    Counts of one threshold at a time are in memory, since text is wide.
    """
    found: dict[Any, list[Group]] = {}
    for group in groups:
        key = repr(getattr(group.prototype, "binarize", None)), tuple(step.key for step in group.steps)
        found.setdefault(key, []).append(group)
    return list(found.values())


def _answer(
    group: Group,
    scoring: SharedScoring,
    i: int,
    folds: ClassedFolds,
    context: RunContext,
    outcome: TaskResult,
) -> None:
    """Answer and score all settings of a group on one split."""
    start, data, family, n = time.perf_counter(), folds.data, group.family, len(group.candidates)
    assert family is not None
    try:
        if not len(data.fold(i).y_test):
            raise Unsupported("the split has no test rows")
        answers = next(iter(family.fit_many(group.prototype, group.settings, folds.split(i))))
        require_valid_answers(family, answers, n, data.X.shape[1], 1, lambda: data.fold(i))
    except Exception as error:
        outcome.leave([(c, i) for c in group.candidates], error)
        return
    outcome.fits_made += answers.fits_made
    fit_time, options = (time.perf_counter() - start) / n, context.job.options
    scored = score_on_host(scoring, answers, group.candidates, data, i, options, fit_time, outcome)
    context.add(scored, individual=False)
