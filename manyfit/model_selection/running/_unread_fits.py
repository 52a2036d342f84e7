"""Fits that are not shared, of an X that scikit-learn cannot read: the search is refused, or they fail."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from copy import copy

from manyfit._compat import is_multimetric, scorers_by_name
from manyfit._config.sizes import format_count
from manyfit.families import STOPS_EARLY
from manyfit.folds import ChunkRows
from manyfit.introspection.composites import build_setting
from manyfit.model_selection.job._chunk_inputs import read_for_shared_fits
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.strategies._doubts import TOO_OPEN

# What a user can do, by a pattern of reasons that are not the settings' fault.
_REMEDIES = {
    "memory_limit": "Set a larger memory_limit",
    "(?<!not )float32": 'Pass numbers of float64, by X.astype("float64")',
    "y is a frame or array of one column": "Pass y with one dimension, as np.ravel(y) makes it",
    "y has the pandas extension dtype": "Pass y as an array of NumPy, by y.to_numpy()",
    "reads a sparse matrix": "Set sparse_output=False in the encoders, or sparse_threshold=0",
    "do not read sparse chunks": "Leave the steps out, or apply those that need no fit to the chunks",
    "which a fit could change": "Pass X and y as arrays of NumPy or frames",
    "y is missing": "Pass y; a function of Blocks may yield (X, y)",
    "rounding in StandardScaler could decide": "Use MaxAbsScaler, whose rounding decides nothing",
    "did not converge": "Set a larger tol, a stronger penalty or a larger memory_limit",
    "class (has no|without) weight|negative or (NaN|not finite)": "Give other weights",
}


def raise_unknown_parameter(job: Job, candidates: Sequence[int]) -> None:
    """Raise scikit-learn's own error if some settings name a parameter that the estimator lacks."""
    for c in candidates:
        build_setting(job.estimator, job.candidates[c])


def refusal(job: Job, reasons: Mapping[Pair, str]) -> str:
    """Why some fits are not made, and what to do; `reasons` are those of each pair."""
    n, found = len(reasons), sorted({*reasons.values()})
    advice = _advice(job, found, some_are_shared=n < job.n_pairs)
    what = "fits cannot be made from chunks" if isinstance(job.X, ChunkRows) else "fits are not shared"
    return f"{n} of {job.n_pairs} {what}: {'; '.join(found)}. {read_for_shared_fits(job.X)} {advice}"


def failed_results(
    job: Job, reasons: Mapping[Pair, str], unscored: Mapping[Pair, Result]
) -> dict[Pair, Result]:
    """The results of some pairs as those of scikit-learn's failed fits.

    Those of fits that are `unscored` have no test scores, as where scikit-learn's scorer fails: it warns, and
    keeps the scores of the training rows.
    """
    options, of_reason = job.options, dict[str, str]()
    scores = options.error_score
    if is_multimetric(options.scorer):
        scores = dict.fromkeys(scorers_by_name(options.scorer), scores)
    results = {pair: {**unscored[pair], "test_scores": copy(scores)} for pair in reasons if pair in unscored}
    for reason in sorted({reasons[pair] for pair in results}):
        n = format_count(sum(reasons[pair] == reason for pair in results), "fit")
        warnings.warn(
            f"Scoring failed. The test scores of {n} are set to {options.error_score}: {reason}.",
            UserWarning,
            stacklevel=2,
        )
    for pair, reason in reasons.items():
        if pair in results:
            continue
        if reason not in of_reason:
            what = "cannot be made from chunks" if isinstance(job.X, ChunkRows) else "is not shared"
            why, advice = f"This fit {what}: {reason}.", _advice(job, [reason], some_are_shared=True)
            of_reason[reason] = f"TypeError: {why} {read_for_shared_fits(job.X)} {advice}"
        result: Result = {"fit_error": of_reason[reason], "fit_time": 0.0, "score_time": 0.0}
        for role in ("test_scores", "train_scores") if options.return_train_score else ("test_scores",):
            result[role] = copy(scores)
        results[pair] = result
    return results


def _advice(job: Job, reasons: Sequence[str], some_are_shared: bool) -> str:
    """What a user can do about fits that are not shared for these reasons."""
    if {*reasons} <= {STOPS_EARLY, TOO_OPEN}:
        others = "set a larger max_iter, " if STOPS_EARLY in reasons else ""
        way_out = "Set sharing='optimum', which gives each setting the score of its optimum"
        return f"{way_out}, {others}or pass X as an array or DataFrame."
    what = "Change the estimator or its parameters"
    if some_are_shared:
        what = "Change these settings or leave them out"
    for pattern, remedy in _REMEDIES.items():
        if all(re.search(pattern, reason) for reason in reasons):
            what = remedy
    others = ", make the search on some rows by sample=100_000," if hasattr(job.search, "sample") else ""
    return f"{what}{others} or pass X as an array or DataFrame."
