"""A planned job on the workers of a cluster: cut into items, run there, and put together again."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

from sklearn import config_context, get_config
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import delayed

from manyfit.cluster import GPU, Died, Progress, end_if_device_is_lost, run_on_cluster, slots
from manyfit.model_selection._arrivals import Arrivals
from manyfit.model_selection._device_work import takes_gpu
from manyfit.model_selection._evaluate import FoldStore, alone
from manyfit.model_selection._family_tasks import not_restored, run_family_split
from manyfit.model_selection._identity import draws
from manyfit.model_selection._job import Job, Pair, Result
from manyfit.model_selection._moment_groups import run_moments
from manyfit.model_selection._one_by_one import fit_piece, pieces
from manyfit.model_selection._outcome import Outcome
from manyfit.model_selection._pass_groups import run_passes
from manyfit.model_selection._plan import Group, Kind, Plan
from manyfit.model_selection._planner import prepare


@dataclass(frozen=True)
class Item:
    """A part of a job that one worker does.

    Attributes
    ----------
    kind : str
        Of the groups of the plan that are answered, whole or on one split; "steps" and "one by one" are fits.
    candidates : tuple of int
    split : int or None
        None: all of them.
    """

    kind: Kind
    candidates: tuple[int, ...]
    split: int | None = None

    def pairs(self, job: Job) -> list[Pair]:
        """What it answers."""
        return [pair for pair in job.pairs(self.candidates) if self.split in (None, pair[1])]


@dataclass(frozen=True)
class Common:
    """What all items of a search have in common.

    Attributes
    ----------
    job : Job
    config : mapping
        scikit-learn's configuration where the search was started.
    filters : sequence of tuple
        Which warnings are shown there, and which are errors.
    """

    job: Job
    config: Mapping[str, Any]
    filters: Sequence[Any]


def run_on_workers(job: Job, plan: Plan, arrivals: Arrivals) -> Outcome:
    """Answer and fit everything that a plan says, on the workers of ``job.client``.

    Moments of all folds are one item, as is a group of iterating fits: their sums are added in the same
    order as in one process. So results do not depend on the number of workers.
    """
    total = Outcome()
    _run(job, plan, _items(job, plan, arrivals), total, arrivals)
    left = sorted(total.alone)
    if left:  # by the groups, or by workers that died of a group
        _run(job, plan, _fits(job, plan, left, arrivals), total, arrivals)
    return total


def _items(job: Job, plan: Plan, arrivals: Arrivals) -> list[Item]:
    """What is to be done: all but what the checkpoint has."""
    items = []
    moments = [c for group in plan.groups if group.kind == "moments" for c in group.candidates]
    if moments and not arrivals.restore(job.pairs(moments)):
        items.append(Item("moments", tuple(moments)))
    passes = [group.candidates for group in plan.groups if group.kind == "passes"]
    items += [Item("passes", cs) for cs in passes if not arrivals.restore(job.pairs(cs))]
    families = [group for group in plan.groups if group.kind == "family"]
    for i in range(job.splits.n_splits):
        left = [c for group in not_restored(families, i, arrivals) for c in group.candidates]
        if left:
            items.append(Item("family", tuple(left), i))
    rest = [c for group in plan.groups if group.kind in ("steps", "one by one") for c in group.candidates]
    return items + _fits(job, plan, job.pairs(sorted(rest)), arrivals)


def _fits(job: Job, plan: Plan, pairs: Sequence[Pair], arrivals: Arrivals) -> list[Item]:
    pairs = [pair for pair in pairs if not arrivals.restore([pair], alone=True)]
    kind: Kind = "one by one" if plan.order is None else "steps"
    needs = _needs(job)(sorted({c for c, _ in pairs}))
    return [Item(kind, tuple(cs), i) for i, cs in pieces(pairs, plan.order, slots(job.client, needs))]


def _needs(job: Job) -> Callable[[Sequence[int]], Mapping[str, float]]:
    gpu = takes_gpu(job)
    return lambda candidates: {GPU: 1} if gpu(candidates) else {}


def _run(job: Job, plan: Plan, items: Sequence[Item], total: Outcome, arrivals: Arrivals) -> None:
    suspects: list[Item] = []
    for item, part in _results(job, items):
        if not isinstance(part, Died):
            total.add(part)
            arrivals.add(part.results, alone=item.kind in ("steps", "one by one"))
        elif item.kind == "one by one":
            dead = {pair: _of_the_dead(job, pair, part) for pair in item.pairs(job)}
            total.results.update(dead)
            arrivals.add(dead, alone=True, lasting=False)  # another cluster may have the memory for it
        elif item.kind == "steps":
            suspects += [Item("one by one", (c,), i) for c, i in item.pairs(job)]
        else:
            total.alone.update(dict.fromkeys(item.pairs(job), "the worker died of the shared work"))
    if suspects:
        _run(job, plan, suspects, total, arrivals)


def _results(job: Job, items: Sequence[Item]) -> Iterator[tuple[Item, Any]]:
    bare = replace(job, search=None, contexts=None, client=None, n_jobs=1)
    common = Common(bare, get_config(), list(warnings.filters))
    params = [*job.options.fit_params.values(), *job.options.score_params.values()]
    estimator, needs = _name(job.estimator), _needs(job)
    return run_on_cluster(
        job.client,
        run_item,
        items,
        common,
        name=lambda item: f"{item.kind.replace(' ', '_')}-{estimator}",
        fuse=lambda item: item.kind == "one by one",
        needs=lambda item: needs(item.candidates),
        owners=[job.X, job.y, *params],
        # Else an equal search at the same time would have the same tasks, and the same draws.
        salt=uuid4().hex if draws(job) else "",
    )


def _name(estimator: Any) -> str:
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1] if steps else estimator).__name__


# ------------------------------------------------------------------------------------ on a worker


def run_item(item: Item, common: Common) -> Outcome:
    """Answer or fit one item on a worker, under the settings of the process that asks for it."""
    if common.filters == list(warnings.filters):
        # They belong to the process: workers that are threads must not change them for each other.
        with config_context(**common.config):
            return _run_item(item, common.job)
    task, args, kwargs = delayed(_run_item)(item, common.job)
    return cast(Outcome, task.with_config_and_warning_filters(common.config, common.filters)(*args, **kwargs))


def _run_item(item: Item, job: Job) -> Outcome:
    if item.kind in ("steps", "one by one"):
        assert item.split is not None
        outcome = fit_piece(job, item.split, item.candidates, item.kind == "steps")
        for result in outcome.results.values():
            end_if_device_is_lost(result["fit_error"])
        return outcome
    # Planned again, from the same job: a plan holds views of the data, which are here already.
    prepared = prepare(job)
    asked = set(item.candidates)
    groups = [g for g in prepared.plan.groups if g.kind == item.kind and asked.issuperset(g.candidates)]
    outcome = _answer(item, job, groups, prepared)
    for pair in item.pairs(job):
        if pair not in outcome.results:
            outcome.alone.setdefault(pair, "the worker's plan is another one")
    return outcome


def _answer(item: Item, job: Job, groups: Sequence[Group], prepared: Any) -> Outcome:
    arrivals = Arrivals(job, bar=Progress(0, 0))  # the search has one of its own
    if not groups:
        return Outcome()
    if item.kind == "moments":
        outcome = run_moments(job, groups, prepared.data, prepared.scoring, arrivals)
        outcome.rows_read += round(prepared.data.passes * job.splits.n_samples)
        return outcome
    if item.kind == "passes":
        return run_passes(job, groups, prepared.rows, arrivals)
    assert item.split is not None
    return run_family_split(job, groups, item.split)


# ------------------------------------------------------------------------------------ of the dead


class _Dies(BaseEstimator):
    """Fails as the fit did that took its worker with it."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def fit(self, X: Any, y: Any = None, **params: Any) -> None:
        """Raise the error."""
        raise self.error


def _of_the_dead(job: Job, pair: Pair, died: Died) -> Result:
    """What scikit-learn makes of a fit that fails: an error score, or the exception."""
    c, i = pair
    params = dict(job.candidates[c])
    error = type(died.error)(f"The worker died each time that it fitted {params} on split {i}. {died.error}")
    folds = FoldStore(job.X, job.y, job.splits, replace(job.options, fit_params={}), False)
    progress = (c, len(job.candidates)), (i, job.splits.n_splits)
    return alone(_Dies(error), {}, i, folds, progress)
