"""The rounds of a halving search before any fit, and a plan of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyfit._compat import NO_CALLBACKS, takes_callback_context, uses_callbacks
from manyfit.families import why_anew
from manyfit.introspection.composites import build_setting
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._plan import Plan
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.search._setup import Setup, draw_splits, make_job

# Strategies whose work is passes over the rows, and next to nothing for each setting.
_PASSES = ("moments", "class moments")
_ANEW = "fits of later rounds do not go on from those of the round before"


@dataclass(frozen=True)
class PlannedRound:
    """The settings of a round as if all scores were equal, the splits, and what each setting may use."""

    candidates: list[Any]
    cv: Any
    n_resources: int


def list_rounds(search: Any, n_splits: int) -> list[PlannedRound]:
    """The rounds of a halving search; only the settings of the first one are those of a fit."""
    rounds: list[PlannedRound] = []

    def record(
        candidate_params: Iterable[Any], cv: Any, more_results: Mapping[str, Any], callback_ctx: Any = None
    ) -> dict[str, Any]:
        candidates = list(candidate_params)
        rounds.append(PlannedRound(candidates, cv, more_results["n_resources"][0]))
        return {
            "iter": more_results["iter"],
            "mean_test_score": np.zeros(len(candidates)),
            "params": candidates,
        }

    search.n_splits_, search.verbose = n_splits, 0
    context = {"callback_ctx": NO_CALLBACKS} if takes_callback_context(search._run_search) else {}
    search._run_search(record, **context)
    return rounds


def plan_rounds(search: Any, setup: Setup, rounds: Sequence[PlannedRound], why_none: str) -> Plan:
    """The plan of the first round, with lines on the others and on the full grid.

    `why_none`: why no fit goes on from one of the round before.
    """
    first = rounds[0]
    contexts: list[Any] | None = [] if uses_callbacks(search) else None

    def job_of(cv: Any) -> Job:
        return make_job(search, setup, first.candidates, draw_splits(setup, cv), contexts)

    job = job_of(first.cv)
    plan = prepare(job).plan
    sizes = [f"{len(one.candidates)} with {one.n_resources}" for one in rounds]
    lines = [
        f"this is the first of {len(rounds)} rounds; settings with {search.resource}: {', '.join(sizes)}"
    ]
    if search.resource == "n_samples":
        lines += _compare_with_grid(prepare(job_of(setup.cv)).plan, rounds, search._n_samples_orig)
    elif len(rounds) > 1:
        lines.append(f"{_ANEW}: {why_none}" if why_none else _say_what_goes_on(job))
    return replace(plan, rounds=tuple(lines))


def _say_what_goes_on(job: Job) -> str:
    """A line on the settings whose fits go on from those of the round before."""
    n_rows, params = len(job.splits.indices(0)[0]), job.options.fit_params
    estimators = [build_setting(job.estimator, one) for one in job.candidates]
    anew = Counter(why_anew(one, n_rows, params) for one in estimators)
    n = anew.pop("", 0)
    others = "; ".join(f"{why} ({count})" for why, count in anew.items())
    if not n:
        return f"{_ANEW}: {others}"
    which = f"{n} of {len(estimators)} settings" if others else "all settings"
    line = f"fits of {which} go on from those of the round before, and add trees or iterations only"
    return f"{line}; fitted anew: {others}" if others else line


def _compare_with_grid(grid: Plan, rounds: Sequence[PlannedRound], n: int) -> list[str]:
    """A line if all settings on all rows cost no more than the rounds, whose fits are all shared, too."""
    shared = all(group.kind in _PASSES and not group.fits_undecided for group in grid.groups)
    rows = sum(one.n_resources for one in rounds) / n
    if not shared or rows < grid.passes:
        return []
    return [
        f"halving saves nothing: all {grid.n_candidates} settings on all rows take {grid.passes:g} "
        f"{'pass' if grid.passes == 1 else 'passes'} over X and no fit, and the rounds read {rows:.2g} times "
        "all rows. GridSearchCV or RandomizedSearchCV compares all settings on all rows for that."
    ]
