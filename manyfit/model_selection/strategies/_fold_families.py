"""Families behind steps that are not affine: the steps are fitted once a fold, then the family answers."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.base import is_classifier

from manyfit.arrays import is_xp_array, label_transfers, to_host_together
from manyfit.families import (
    Answers,
    Cost,
    FoldRows,
    Iterations,
    MomentSums,
    Shape,
    is_of_manyfit,
    require_valid_answers,
    target_function,
)
from manyfit.folds import (
    AtomGroup,
    FoldArrays,
    PassData,
    SingleFold,
    Unsupported,
    as_matrix,
    finite_middle,
    indicated_classes,
)
from manyfit.introspection.composites import build_setting
from manyfit.introspection.randomness import find_random_parameter
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.planning._cost_checks import (
    NOT_CHEAPER,
    convergence_note,
    n_classes,
    require_cheaper,
    require_gradient_stop,
    require_memory,
    stops_as_sklearn,
)
from manyfit.model_selection.planning._parameter_checks import WRITES
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings
from manyfit.model_selection.sharing._fold_store import FoldStore, SharedFold
from manyfit.model_selection.sharing.rows._own_rows import own_copy
from manyfit.model_selection.strategies._doubts import PendingAnswers
from manyfit.model_selection.strategies._fold_rows import require_device_reader, require_weights, rows_of_fold
from manyfit.model_selection.strategies._individual_fits import (
    SHARED_STEPS,
    TimeLimit,
    fit_setting,
    nested_requests,
    retained_store,
)
from manyfit.model_selection.strategies._strategy import (
    Batch,
    RunContext,
    Schedule,
    Strategy,
    WorkItem,
    family_group,
    nothing_in_common,
    scoring_of,
)


@dataclass(frozen=True)
class FoldFamilyStrategy(Strategy):
    """The steps are fitted once a fold, and a family answers all settings of the last one.

    All groups of a split are one item, so that they share the steps that they have in common.
    """

    kind = "shared in folds"
    title = "steps before the last one shared, and fits of the last one where that pays"
    shares_fits = True
    shares_steps = True
    last_step_place = ("device", "its shared fits read the rows where they lie")

    def heading(self, group: Group) -> str:
        return self.title if group.steps else "fits of the last step shared where that pays"

    def matches(self, batch: Batch) -> bool:
        return batch.family is not None

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        if facts.must_share:
            raise Unsupported(f"{batch.spec.final.cls.__name__} reads the rows of a fold as one array")
        (group, scoring), spec = family_group(self, batch, facts), batch.spec
        _require_shareable_rows(batch, facts)
        require_weights(group, scoring, facts.job)
        _require_deterministic_last_step(batch, facts)
        cost = _planned_cost(group, facts)
        if not spec.steps and cost.shared > cost.individual and isinstance(facts.job.X, np.ndarray):
            raise Unsupported(NOT_CHEAPER)
        reason = convergence_note(group.prototype, stops_as_sklearn(facts.job)) if _iterates(group) else ""
        output = f"the output of {spec.steps[-1].cls.__name__}" if spec.steps else "the rows of a split"
        return replace(
            group,
            reason=reason,
            fits_planned=min(int(cost.fits), group.fits_requested),
            fits_undecided=group.fits_requested,  # fits of the family may answer nothing
            decided_by=output,
            once=facts.done_once(spec),
        )

    def work_items(self, groups: Sequence[Group], schedule: Schedule) -> list[WorkItem]:
        """See `Strategy`. Items that are no whole round of the workers may be divided among them."""
        plan, sink = schedule.plan, schedule.sink
        # Fits in scikit-learn's order come later, and find the folds of all splits.
        fits_rest = plan.order is not None and not plan.by_candidate if schedule.in_process else True
        others = schedule.planned if schedule.in_process and fits_rest else ()
        others = tuple(pair for pair in others if not sink.restore([pair], individual=True))
        items: list[WorkItem] = []
        for i in range(schedule.job.splits.n_splits):
            left = [group for group in groups if not sink.restore([(c, i) for c in group.candidates])]
            own = tuple(c for c, split in others if split == i)
            pairs = tuple((c, i) for group in left for c in group.candidates)
            if pairs or own:
                fitted_before = tuple(sorted(c for c, _ in sink.individual_results(pairs)))
                items.append(
                    WorkItem(
                        self, pairs or tuple((c, i) for c in own), tuple(left), own, fitted_before, fits_rest
                    )
                )
        if not items:
            return []
        n_slots = schedule.n_slots(items[0].candidates)
        whole = len(items) - len(items) % n_slots
        return items[:whole] + [replace(item, divisible=True) for item in items[whole:]]

    def run(self, item: WorkItem, context: RunContext) -> TaskResult:
        outcome, limit, start = TaskResult(), TimeLimit(), time.perf_counter()
        job, i = context.answered, item.split
        folds = self._folds(item, context, job)
        before = folds.work
        for group in _not_refused(item, context, folds, outcome):
            began = time.perf_counter()
            try:
                answered = _answer(group, i, folds, context, outcome)
            except Exception as error:
                outcome.leave([(c, i) for c in group.candidates], _about_output(error, group))
                outcome.seconds += time.perf_counter() - began
            else:
                context.add(answered, individual=False)
        if item.fits_rest and context.may_fit_rest:
            _fit_rest(item, context, folds, outcome, limit)
        outcome.work.update(folds.work_since(before))
        if context.sink is not None:
            context.sink.steps_saved += outcome.work["transformer_fits_saved"]
        outcome.seconds = time.perf_counter() - start
        left = tuple(pair for pair in outcome.left if pair[0] not in item.fitted_before)
        if context.returns_early and left and not item.divisible:
            outcome.unfinished = WorkItem(SHARED_STEPS, left)
        context.refused.update(outcome.refused)
        return outcome

    def _folds(self, item: WorkItem, context: RunContext, job: Job) -> FoldStore:
        if context.keeps_folds and context.by_candidate and context.may_fit_rest:
            if context.folds is None:
                context.folds = retained_store(context, job, range(len(job.candidates)))
            return context.folds
        # Settings of a group have their steps in common.
        requests = nested_requests(job, [*(group.candidates[0] for group in item.groups), *item.others])
        return FoldStore(job.X, job.y, job.splits, job.options, True, rowwise=job.rowwise, requests=requests)


FOLD_FAMILIES = FoldFamilyStrategy()


def _iterates(group: Group) -> bool:
    return group.family is not None and isinstance(group.family.reads, Iterations)


def _require_shareable_rows(batch: Batch, facts: SearchFacts) -> None:
    """Raise `Unsupported` if the rows behind the steps are not the same for all settings."""
    job, spec = facts.job, batch.spec
    if not facts.may_share_rows:
        raise Unsupported("rows of a device are not shared with estimators that may write into them")
    if facts.fits_on_device and is_xp_array(job.X):
        require_device_reader(batch.family, spec.final.cls)
        as_matrix(job.X)  # or the reason why not
    if len(batch.candidates) < 2:
        raise Unsupported(nothing_in_common(batch))
    if spec.final.path.count("__") or any("__" in step.path for step in spec.steps):
        raise Unsupported("a nested pipeline holds a step that is not affine")
    drawing = facts.drawing.first(spec)
    if drawing is not None:
        step = spec.steps[drawing]
        drawn = f"{step.cls.__name__} draws random numbers anew in each fit"
        raise Unsupported(step.unshared_reason or drawn)
    if facts.checks.writes_into_input(spec):
        raise Unsupported(WRITES)


def _not_refused(
    item: WorkItem, context: RunContext, folds: FoldStore, outcome: TaskResult
) -> Sequence[Group]:
    """The groups of an item, without those that were refused as a whole on an earlier split.

    If some folds are dropped, steps that are fitted for a refused group would be fitted again.
    """
    if context.folds is None or folds.keeps_all:
        return item.groups
    found = []
    for group in item.groups:
        pairs = [pair for pair in context.refused if pair[0] in set(group.candidates)]
        if len({c for c, _ in pairs}) < len(group.candidates):
            found.append(group)
        else:
            outcome.leave([(c, item.split) for c in group.candidates], context.refused[pairs[0]])
    return found


def _fit_rest(
    item: WorkItem, context: RunContext, folds: FoldStore, outcome: TaskResult, limit: TimeLimit
) -> None:
    """Fit what families have left, and the others of the item, on the same fold.

    The seconds of refusals are added to the first fit, which reads the steps that they fitted.
    """
    seconds_refused, start, i = outcome.seconds, time.perf_counter(), item.split
    job, order = context.fitted, context.order
    folds = folds.with_options(job.options)
    left = [c for c in item.candidates if (c, i) in outcome.refused and c not in item.fitted_before]
    waiting = dict.fromkeys([*left, *item.others])
    for c in sorted(waiting, key=lambda c: (() if order is None else order[c], c)):
        result = fit_setting(job, c, i, folds, outcome)
        result["fit_time"], seconds_refused = result["fit_time"] + seconds_refused, 0.0
        outcome.results[c, i] = result
        outcome.fitted.add((c, i))
        context.add({(c, i): result}, individual=True)
        if (context.returns_early or item.divisible) and limit.is_over():
            break
    outcome.seconds_fitting += time.perf_counter() - start


def _about_output(error: Exception, group: Group) -> Exception:
    """The refusal of a group whose family reads the output of steps, which is not the user's X."""
    text = str(error)
    if isinstance(error, Unsupported) and group.steps and text.startswith("X "):
        return Unsupported(f"{group.decided_by}{text[1:]}")
    return error


def _answer(
    group: Group, i: int, folds: FoldStore, context: RunContext, outcome: TaskResult
) -> dict[Pair, Result]:
    """The family's results for a group; refused settings are noted."""
    job = context.answered
    first = job.candidates[group.candidates[0]]
    model = build_setting(job.estimator, first)
    fold = folds.get(i, model)
    before, saved, answered = fold.cache.fits_requested, fold.cache.saved, dict[Pair, Result]()
    deferred = DeferredWarnings()
    try:
        with deferred.under("family"):
            answered = _fit_family(group, i, model, fold, folds, context, outcome)
    finally:
        if deferred.emit(("family",) if answered else ()):
            # Steps warned: they run again where, and if, a fit by scikit-learn runs them.
            fold.cache.drop_entries()
        # Settings that the family refused count their own fits of steps.
        fold.cache.count_answered(len(answered), before, saved)
    return answered


def _fit_family(
    group: Group,
    i: int,
    model: Any,
    fold: SharedFold,
    folds: FoldStore,
    context: RunContext,
    outcome: TaskResult,
) -> dict[Pair, Result]:
    start, options, family = time.perf_counter(), context.answered.options, group.family
    assert family is not None
    with folds.shared_fits():
        scoring = scoring_of(group, options)
        rows = rows_of_fold(group, model, fold, context.answered, scoring)
        if not is_of_manyfit(family):  # a user's family may write into them
            rows = FoldArrays(*(own_copy(getattr(rows, one.name)) for one in fields(rows)))
    of_classes = is_classifier(model) and isinstance(family.reads, MomentSums)
    classes = indicated_classes(rows.y_train) if of_classes else None
    folded = SingleFold(rows, classes, target_function(family))
    _require_worth(group, folded, context)
    seen = _pass_data(rows, context) if _iterates(group) else folded
    n_threads = context.n_threads if getattr(family, "fits_in_threads", False) else 1
    threads = parallel_config("threading", n_jobs=n_threads) if n_threads > 1 else nullcontext()
    with label_transfers("iterations" if _iterates(group) else "moments"), threads:
        answers = next(iter(family.fit_many(group.prototype, group.settings, seen)))
    if not isinstance(answers, Answers):
        raise Unsupported(f"{type(family).__name__} has to give Answers, not {type(answers).__name__}")
    fitted = time.perf_counter() - start
    n, q = len(group.candidates), folded.n_targets
    require_valid_answers(family, answers, n, rows.X_train.shape[1], q, lambda: rows)
    pending = PendingAnswers(scoring, answers, group.candidates, folded, 0, options)
    on_host = to_host_together(*pending.device_scores, label="scores")
    return pending.finish(on_host, outcome, i, fitted / n, context.sklearn_stops)


def _pass_data(rows: FoldArrays, context: RunContext) -> PassData:
    """The training rows of one fold, to be gone over."""
    X, y = rows.X_train, rows.y_train
    if y.ndim != 1:
        raise Unsupported("y has several columns")
    origin = finite_middle(X)
    every = AtomGroup(range(1), [slice(0, y.shape[0])], np.ones((1, 1)), np.zeros((1, 1)))
    return PassData(
        X, y, [every], rows.fit_weight, [None], context.answered.options.memory_limit, origin=origin,
        sklearn_stops=context.sklearn_stops,
    )  # fmt: skip


def _require_worth(group: Group, folded: SingleFold, context: RunContext) -> None:
    """Raise `Unsupported` if sharing does not pay, now that the data behind the steps are known."""
    rows, family, job = folded.fold(0), group.family, context.answered
    assert family is not None
    (n, p), q = rows.X_train.shape, folded.n_targets
    entries = getattr(rows.X_train, "nnz", None)
    classes, n_test = n_classes(group.prototype, rows.y_train), rows.X_test.shape[0]
    shape = Shape(n, p, q, 1, classes, entries, n_test)
    if context.sklearn_stops:
        require_gradient_stop(family, group.prototype, shape)
    require_cheaper(group, shape, job)
    if isinstance(family.reads, MomentSums):
        require_memory(folded.moment_bytes, job.options.memory_limit)


def _require_deterministic_last_step(batch: Batch, facts: SearchFacts) -> None:
    """Raise `Unsupported` if fits of the last step differ by chance, and its seed is no free parameter."""
    family = batch.family
    if family is None or not isinstance(family.reads, FoldRows):
        return
    for spec in batch.specs:
        if isinstance(spec, PipelineSpec) and facts.drawing.last_draws(spec):
            drawn = find_random_parameter(spec.final.build())
            if drawn is None or drawn.name not in family.free:
                raise Unsupported(f"{spec.final.cls.__name__} draws random numbers anew in each fit")


def _planned_cost(group: Group, facts: SearchFacts) -> Cost:
    """The cost that the family gives for the size of X; behind the steps it may be another."""
    assert group.family is not None
    try:
        shape = facts.data.rough_shape(group.prototype)
        return group.family.cost(group.prototype, group.settings, shape)
    except Exception:  # X is no matrix, or y has no classes: the rows of a fold will tell
        return Cost(0.0, 0.0)
