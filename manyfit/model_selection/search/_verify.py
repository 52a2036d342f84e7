"""A check of shared scores: some pairs are fitted again by scikit-learn's own function."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.planning.places._data_location import data_for_fits
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.running._time_budget import NotMade
from manyfit.model_selection.sharing._fit_and_score import fit_with_sklearn
from manyfit.model_selection.sharing._fold_store import FoldStore


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
