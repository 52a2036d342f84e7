"""Checks of shared scores: pairs that scikit-learn's own function fits again, and the refit."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from manyfit.folds import is_row_source
from manyfit.introspection.class_names import public_name
from manyfit.introspection.composites import last_step
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.planning._cost_checks import stops_as_sklearn
from manyfit.model_selection.planning._plan import Group, Plan
from manyfit.model_selection.planning._search_data import SearchData
from manyfit.model_selection.planning.places._data_location import data_for_fits
from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.running._engine import fit_pairs
from manyfit.model_selection.running._time_budget import NotMade
from manyfit.model_selection.sharing._fit_and_score import fit_with_sklearn
from manyfit.model_selection.sharing._fold_store import FoldStore

if TYPE_CHECKING:
    from manyfit.model_selection.checkpoint._file import Checkpoint

REFIT_STOPPED = "scikit-learn's solver stopped at max_iter in the refit"


def verify(job: Job, results: Sequence[Result], n: int, report: Report) -> dict[Pair, list[dict[str, Any]]]:
    """Fit `n` random pairs again by scikit-learn, and compare the scores with `results`.

    Returns rows of params, split, scorer, set, shared, sklearn, difference, and the seconds of scikit-learn's
    fit and scores. The time goes into `report`.
    """
    start = time.perf_counter()
    job = data_for_fits(job)
    k = job.splits.n_splits
    # Its own generator: the choice must not advance the user's random states.
    made = [j for j, one in enumerate(results) if not isinstance(one, NotMade)]
    if job.options.fit_timeout is not None:  # nothing would end here what it has ended
        made = [j for j in made if results[j]["fit_error"] is None]
    chosen = np.random.default_rng().choice(made, size=min(n, len(made)), replace=False)
    quiet = replace(job.options, verbose=0)
    folds = FoldStore(job.X, job.y, job.splits, quiet, False)
    rows: dict[Pair, list[dict[str, Any]]] = {}
    for position in sorted(int(j) for j in chosen):
        c, i = divmod(position, k)
        ours = results[position]
        theirs = fit_with_sklearn(job.estimator, job.candidates[c], i, folds, (None, None))
        rows[c, i] = _compare(dict(job.candidates[c]), i, ours, theirs)
        for row in rows[c, i]:
            row["seconds"] = theirs["fit_time"] + theirs["score_time"]
    report.spend("verify", time.perf_counter() - start)
    return rows


def _compare(params: dict[str, Any], i: int, ours: Result, theirs: Result) -> list[dict[str, Any]]:
    rows = []
    for role in ("test", "train"):
        mine: Any = ours.get(f"{role}_scores")
        other: Any = theirs.get(f"{role}_scores")
        if mine is None or other is None:
            continue
        named = mine if isinstance(mine, dict) else {"score": mine}
        others = other if isinstance(other, dict) else dict.fromkeys(named, other)
        for name, value in named.items():
            rows.append(
                {"params": params, "split": i, "scorer": name, "set": role, "shared": value,
                 "sklearn": others[name], "difference": _difference(value, others[name])}
            )  # fmt: skip
    return rows


def compare_again(rows: Iterable[dict[str, Any]], ours: Result) -> None:
    """Replace the shared scores in rows of `verify` by those of another result."""
    for row in rows:
        scores = ours[f"{row['set']}_scores"]
        row["shared"] = scores[row["scorer"]] if isinstance(scores, dict) else scores
        row["difference"] = _difference(row["shared"], row["sklearn"])


def _difference(ours: Any, theirs: Any) -> Any:
    same = ours == theirs or (np.isnan(ours) and np.isnan(theirs))
    return 0.0 if same else abs(ours - theirs)


@dataclass(frozen=True)
class Round:
    """Settings that were evaluated together, with their results.

    `groups` and `verified` are the report's entries for the groups of the plan and for verified scores.
    `checkpoint` is closed. `before` is the number of settings in earlier rounds. `data` are those of an X in
    chunks.
    """

    job: Job
    plan: Plan
    arrivals: ResultSink
    groups: Sequence[Mapping[str, Any]]
    verified: Mapping[Pair, list[dict[str, Any]]]
    checkpoint: "Checkpoint | None"
    before: int
    data: SearchData | None = None

    @property
    def stopped_audit(self) -> set[Pair]:
        """Shared pairs that scikit-learn was going to fit when an earlier process was interrupted."""
        return set() if self.checkpoint is None else self.arrivals.shared & self.checkpoint.doubted

    def in_doubt(self, best: int) -> set[Pair]:
        """Pairs that scikit-learn has to fit if its solver stops early in the refit of candidate `best`.

        They iterated in one group with the best one, where scikit-learn's solver was expected to converge.
        """
        if not stops_as_sklearn(self.job) or is_row_source(self.job.X):
            return set()
        groups = [group for group in self.plan.groups if best in group.candidates and _iterates(group)]
        pairs = {pair for group in groups for pair in self.job.pairs(group.candidates)}
        return pairs & self.arrivals.shared

    def fit_again(self, pairs: Collection[Pair], out: list[Result], report: Report) -> None:
        """Fit shared pairs by scikit-learn, and put the results into `out`.

        The checkpoint marks the pairs before the first fit: a search that continues from it fits all of them,
        and so never compares scores of two kinds.
        """
        job, arrivals, n = self.job, self.arrivals, len(pairs)
        checkpoint = None if self.checkpoint is None else self.checkpoint.reopened(pairs)
        if job.options.verbose > 0:
            print(f"{REFIT_STOPPED}: scikit-learn makes {n} fits that were shared")
        again = ResultSink(job, checkpoint, bar=Progress(n, job.options.verbose))
        try:
            done = fit_pairs(job, self.plan, sorted(pairs), again)
        finally:  # after Ctrl-C, too
            for (c, i), result in again.results.items():
                out[(self.before + c) * job.splits.n_splits + i] = result
        groups = [
            (said, _count(group, pairs)) for group, said in zip(self.plan.groups, self.groups, strict=True)
        ]
        report.take_back(done, groups, len(arrivals.restored.intersection(pairs)), REFIT_STOPPED)
        arrivals.shared.difference_update(pairs)
        for pair in pairs:
            arrivals.doubts.pop(pair, None)
            compare_again(self.verified.get(pair, ()), again.results[pair])


def stopped_early(estimator: Any) -> bool:
    """Whether the solver of an estimator that scikit-learn has fitted used all its iterations."""
    estimator = last_step(estimator)
    if public_name(type(estimator)) == "sklearn.multiclass.OneVsRestClassifier":
        return any(map(stopped_early, estimator.estimators_))
    n_iter, max_iter = getattr(estimator, "n_iter_", None), getattr(estimator, "max_iter", None)
    return n_iter is not None and max_iter is not None and bool(np.max(n_iter) >= max_iter)


def _iterates(group: Group) -> bool:
    return group.family is not None and group.family.result == "converged"


def _count(group: Group, pairs: Collection[Pair]) -> int:
    own = set(group.candidates)
    return sum(c in own for c, _ in pairs)
