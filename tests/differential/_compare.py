"""Compare what two searches left behind, and judge the differences.

Compared are keys and their order, dtypes, settings, where scores are NaN, scores, means, ranks, the best
setting, what it predicts after the refit, exceptions and warnings. Scores that differ by more than rounding
are judged cell by cell against the truth (``_truth.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rankdata

from tests.differential._problem import Outcome, Problem
from tests.differential._recipe import Data
from tests.differential._truth import Truth

# scikit-learn's float32 answers are held to be this near, in units of the score's scale.
FLOAT32_ROUNDING = 2e-6
# "No further than scikit-learn": than twice its error, or than four times the largest of the few errors seen
# when only rounding differs (the largest of six says little about the largest of thousands of cells).
SLACK, SCATTER_SLACK = 2.0, 4.0
# What scikit-learn warns of by the labels that are predicted, which `tol` may leave open.
OF_LABELS = {"UserWarning: y_pred contains classes "}
# scikit-learn raises these where a function that returns several scores fails on some of the splits. Our
# scores of these splits are `error_score`, as with other scorers.
FAILED_ON_SOME = (
    "float() argument must be a string or a real number, not 'dict'",
    "'float' object is not subscriptable",
    "'int' object is not subscriptable",
)


def differences(problem: Problem, theirs: Outcome, ours: Outcome) -> list[str]:
    """Everything in which `ours` is not scikit-learn's answer; empty if nothing."""
    # What fails in scikit-learn may fail in shared work first.
    failures = () if "FitFailedWarning" in theirs.warned else _failures(ours)
    return [*failures, *_answer_differences(problem, theirs, ours)]


def _answer_differences(problem: Problem, theirs: Outcome, ours: Outcome) -> list[str]:
    if ours.error is None and problem.options.form == "callable" and str(theirs.error) in FAILED_ON_SOME:
        scores = [ours.results[key] for key in ours.results if re.match(r"split\d+_test_own", key)]
        given = problem.options.error_score
        failed = np.isnan(scores) if np.isnan(given) else np.equal(scores, given)
        return [] if failed.any() and not failed.all() else ["scores: none, or all, are error_score in ours"]
    if theirs.error is not None or ours.error is not None:
        return list(_error_differences(theirs, ours))
    found = list(_layout_differences(theirs.results, ours.results))
    if not found:
        found += _score_differences(problem, theirs.results, ours.results)
        found += _summary_differences(problem, ours)
        found += _attribute_differences(theirs, ours)
    open_to_both = OF_LABELS if problem.case.result == "converged" else set()
    if (theirs.warned ^ ours.warned) - open_to_both:
        found.append(f"warnings: {sorted(theirs.warned)} from scikit-learn, {sorted(ours.warned)} from ours")
    return found


def check(problem: Problem, search_class: Any, reference: Any) -> tuple[Outcome, Outcome]:
    """Run both searches; AssertionError with everything needed to reproduce if they differ."""
    theirs, ours = problem.run(reference), problem.run(search_class)
    found = differences(problem, theirs, ours)
    report = [f"{len(found)} difference(s)", str(problem), *found, *_side_by_side(theirs, ours)]
    assert not found, "\n".join(report)
    return theirs, ours


def _side_by_side(theirs: Outcome, ours: Outcome) -> Iterator[str]:
    """The scores and ranks that are not the same to the last bit, in full."""
    if theirs.results is None or ours.results is None:
        return
    with np.printoptions(precision=17):
        for key, expected in theirs.results.items():
            got = ours.results.get(key)
            scored = re.match(r"split|rank|mean_t", key)
            if scored and not np.array_equal(expected, got, equal_nan=True):
                yield f"{key}:\n  scikit-learn {expected}\n  ours         {got}"


# ---------------------------------------------------------------------------------------------- exceptions


def _failures(ours: Outcome) -> Iterator[str]:
    """Shared work that raised what it did not mean to; scikit-learn's own fits stood in for it."""
    left = getattr(getattr(ours.search, "report_", None), "left_to_sklearn", {})
    yield from (why for why in left if why.startswith("shared work failed"))


def _error_differences(theirs: Outcome, ours: Outcome) -> Iterator[str]:
    if type(theirs.error) is not type(ours.error):
        yield f"exception: {theirs.error!r} from scikit-learn, {ours.error!r} from ours"
    elif _essence(str(theirs.error)) != _essence(str(ours.error)):
        yield f"message of the exception:\n  scikit-learn {_essence(str(theirs.error))}"
        yield f"  ours         {_essence(str(ours.error))}"


def _essence(message: str) -> list[str]:
    """The first line and, of tracebacks quoted in the message, the lines that name exceptions, each once.

    XGBoost begins its messages with the time of day.
    """
    first, *rest = re.sub(r"\[\d\d:\d\d:\d\d\] ", "", message).splitlines() or [""]
    named = (line for line in rest if re.match(r"[\w.]+(Error|Exception)\b|\d+ fits", line))
    return [first, *dict.fromkeys(named)]


# ---------------------------------------------------------------------------------------- keys and settings


def _layout_differences(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    if list(theirs) != list(ours):
        yield f"keys of cv_results_: {list(theirs)} from scikit-learn, {list(ours)} from ours"
        return
    if repr(theirs["params"]) != repr(ours["params"]):
        yield f"params: {theirs['params']} from scikit-learn, {ours['params']} from ours"
        return
    for key, expected in theirs.items():
        got = ours[key]
        if type(expected) is not type(got) or getattr(expected, "dtype", 0) != getattr(got, "dtype", 0):
            yield f"{key}: {_kind(expected)} from scikit-learn, {_kind(got)} from ours"
        elif key.startswith("param_") and repr(expected) != repr(got):
            yield f"{key}: {expected!r} from scikit-learn, {got!r} from ours"
        elif key.endswith("_time") and not (np.shape(got) == expected.shape and np.all(got >= 0)):
            yield f"{key}: {got!r} from ours"


def _kind(value: Any) -> str:
    return f"{type(value).__name__} of {getattr(value, 'dtype', '')}"


# ---------------------------------------------------------------------------------------------------- scores


def _score_differences(problem: Problem, theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    judge = Judge(problem, Truth(problem))
    for key in theirs:
        if re.match(r"split\d+_(test|train)_", key):
            for i, (expected, got) in enumerate(zip(theirs[key], ours[key], strict=True)):
                reason = judge.objection(key, i, float(expected), float(got))
                if reason:
                    numbers = f"{float(expected)!r} from scikit-learn, {float(got)!r} from ours"
                    yield f"{key}[{i}] {theirs['params'][i]}: {numbers}, {reason}"


@dataclass(frozen=True)
class Judge:
    """Decides whether a score may differ from scikit-learn's as it does."""

    problem: Problem
    truth: Truth

    def objection(self, key: str, i: int, theirs: float, ours: float) -> str | None:
        """Why the difference is not acceptable, or None."""
        if not (np.isfinite(theirs) and np.isfinite(ours)):
            same = theirs == ours or (np.isnan(theirs) and np.isnan(ours))
            return None if same else "not finite in one of the two"
        rtol = max(FLOAT32_ROUNDING if self._single else 0.0, self.problem.case.tolerance)
        if abs(theirs - ours) <= self.allowance(key, theirs, rtol):
            return None
        return self._against_truth(key, i, theirs, ours, rtol)

    def _against_truth(self, key: str, i: int, theirs: float, ours: float, rtol: float) -> str | None:
        truth = self.truth.results.get(key, {i: np.nan})[i]
        if not np.isfinite(truth):
            # No better route: scikit-learn's own numbers, and float32 as near as the issue asks.
            loose = 1e-4 if self._single else rtol
            off = abs(theirs - ours)
            if off <= self.allowance(key, theirs, loose):
                return None
            # They are known to no more digits than rows in another order, or off by one unit, leave them.
            own = [abs(s[key][i] - theirs) for s in self.truth.scatter if key in s and np.isfinite(s[key][i])]
            worst = max(own, default=0.0)
            if off <= SCATTER_SLACK * worst:
                return None
            return f"there is no better route to judge by, and its own rounding moves it by up to {worst:.2e}"
        tiny = self.allowance(key, truth, rtol / 10)
        if abs(ours - truth) <= SLACK * abs(theirs - truth) + tiny:
            return None
        scatter = [s[key][i] for s in self.truth.scatter if key in s and np.isfinite(s[key][i])]
        # Where the gradient may be small far from the optimum, predictions may overflow.
        near = [s[key][i] if np.isfinite(s[key][i]) else np.inf for s in self.truth.nearby if key in s]
        worst = max((abs(s - truth) for s in (*scatter, *near)), default=0.0)
        if abs(ours - truth) <= SCATTER_SLACK * worst + tiny:
            return None
        return (
            f"truth {truth!r}: off by {abs(ours - truth):.2e}, scikit-learn by {abs(theirs - truth):.2e}"
            f" and by up to {worst:.2e} when only rounding, or what `tol` leaves open, differs"
        )

    def allowance(self, key: str, score: float, rtol: float) -> float:
        """The difference that is no difference, for a score of this kind and size."""
        metric = self._metric(key)
        size = abs(score)
        if metric in BOUNDED:
            return rtol * max(1.0, size)
        # Residuals are differences of numbers as large as y, so below this they are rounding.
        floor = 1e-4 * rtol * self._size_of_y
        if metric == "neg_mean_squared_error":
            return rtol * size + 2 * np.sqrt(size) * floor + floor**2
        return rtol * size + floor

    def _metric(self, key: str) -> str:
        name = key.split("_", 2)[2]
        if name == "score":
            return self.problem.options.scorers[0] if self.problem.options.scorers else "r2"
        if re.fullmatch(r"m\d", name):
            return self.problem.options.scorers[int(name[1:])]
        return name

    @cached_property
    def _data(self) -> Data:
        return self.problem.recipe.build()

    @cached_property
    def _single(self) -> bool:
        return self._data.matrix.dtype == np.float32

    @cached_property
    def _size_of_y(self) -> float:
        labels = self._data.labels
        if labels.dtype.kind not in "fiu":
            return 1.0
        return float(np.max(np.abs(labels), initial=0.0, where=np.isfinite(labels)))


# Scores about one in size, or that are small only as differences of numbers about one.
BOUNDED = {
    "r2",
    "explained_variance",
    "accuracy",
    "f1_macro",
    "neg_log_loss",
    "roc_auc",
    "balanced_accuracy",
    "neg_brier_score",
    "roc_auc_ovr",
    "own",
}

# ------------------------------------------------------------------------------------ means, ranks, the best


def _summary_differences(problem: Problem, ours: Outcome) -> Iterator[str]:
    """Means and ranks that do not follow from the search's own scores.

    The scores being scikit-learn's up to rounding, this is as much as asking that ranks are scikit-learn's
    except among settings that tie within rounding.
    """
    results = ours.results
    for key in (k for k in results if k.startswith("mean_t")):
        part = key.removeprefix("mean_")
        scores = np.array([results[k] for k in results if re.fullmatch(rf"split\d+_{part}", k)])
        # D2 of a constant target is infinite, and squares of what explodes on a fold are.
        with np.errstate(invalid="ignore", over="ignore"):
            summaries = (("mean", scores.mean(axis=0)), ("std", scores.std(axis=0)))
        for name, expected in summaries:
            # Absolute in the mean: a standard deviation of equal scores is rounding.
            scale = 1e-12 * np.abs(scores).max(axis=0)
            got = results[f"{name}_{part}"]
            near = np.isclose(got, expected, rtol=1e-12, atol=0, equal_nan=True)
            with np.errstate(invalid="ignore"):
                near |= np.abs(got - expected) <= scale
            if not np.all(near):
                yield f"{name}_{part}: {got!r} is not that of the splits, {expected!r}"
        if f"rank_{part}" in results and not np.array_equal(results[f"rank_{part}"], _ranks(results[key])):
            yield f"rank_{part}: {results[f'rank_{part}']!r} does not follow from {results[key]!r}"
    yield from _best_differences(problem, ours)


def _ranks(means: np.ndarray) -> np.ndarray:
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    worst = np.nanmin(means) - 1
    return rankdata(-np.nan_to_num(means, nan=worst), method="min").astype(np.int32)


def _best_differences(problem: Problem, ours: Outcome) -> Iterator[str]:
    best, refit = ours.attributes.get("best_index_"), problem.options.refit_parameter()
    if best is None:
        return
    # A function that gives several scores has one, the error score, where all of its calls fail.
    metric = refit if f"rank_test_{refit}" in ours.results else "score"
    expected = refit(ours.results) if callable(refit) else ours.results[f"rank_test_{metric}"].argmin()
    if best != expected:
        yield f"best_index_: {best} is not {expected}"
    if ours.search.best_params_ != ours.results["params"][best]:
        yield f"best_params_: {ours.search.best_params_}"
    if not callable(refit) and not np.array_equal(
        ours.search.best_score_, ours.results[f"mean_test_{metric}"][best], equal_nan=True
    ):
        yield f"best_score_: {ours.search.best_score_}"


def _attribute_differences(theirs: Outcome, ours: Outcome) -> Iterator[str]:
    same_best = theirs.attributes.get("best_index_") == ours.attributes.get("best_index_")
    # Settings that tie within rounding: the scores were judged already, and another one may be the best.
    passed = set() if same_best else {"best_index_", "best_estimator_", "predictions", *OF_BEST_ESTIMATOR}
    expected, got = ({k: v for k, v in o.attributes.items() if k not in passed} for o in (theirs, ours))
    if set(expected) != set(got):
        yield f"attributes: {sorted(expected)} from scikit-learn, {sorted(got)} from ours"
        return
    for name, value in expected.items():
        # Predictions too, to the last bit: the same fit of the same setting on the same rows.
        a, b = np.asarray(value), np.asarray(got[name])
        if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            yield f"{name}: {value!r} from scikit-learn, {got[name]!r} from ours"


OF_BEST_ESTIMATOR = ("n_features_in_", "feature_names_in_", "classes_")
