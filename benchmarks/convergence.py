"""Scores of searches in which scikit-learn's solvers stop before their tolerance.

A score must be scikit-learn's own or, if scikit-learn's own fit has met `tol`, that of the optimum. This
counts the scores that are neither, over data sets, scales, solvers and grids. Everything that can be shared
is shared, whatever it costs.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV as Reference
from sklearn.model_selection import check_cv
from sklearn.svm import LinearSVC, LinearSVR

from benchmarks._benchmark import register
from benchmarks._scales import data_sets, regression_targets, scales
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import at_most
from manyfit.estimators import Cost, family_of
from manyfit.model_selection import GridSearchCV

FOLDS = 3
C = {"C": [1e-2, 1.0, 1e2, 1e4]}
ALPHA = {"alpha": [1e-4, 1e-2, 1.0, 10.0]}
SVR = {"loss": "squared_epsilon_insensitive", "dual": False}
CLASSIFIERS = (
    LogisticRegression(),
    LogisticRegression(max_iter=1000),
    LogisticRegression(solver="newton-cholesky"),
    LogisticRegression(solver="liblinear"),
    LogisticRegression(solver="liblinear", l1_ratio=1.0, random_state=0),
    LinearSVC(dual=False),
)
REGRESSORS = (LinearSVR(**SVR), PoissonRegressor(), GammaRegressor(max_iter=1000))

_COLUMNS = (
    Column("estimator", "estimator"),
    Column("searches", "searches"),
    Column("fits", "fits"),
    Column("shared", "shared"),
    Column("met", "met tol in scikit-learn"),
    Column("wrong", "shared where it did not"),
    Column("winners", "other winners"),
    Column("untied", "of them not named as ties"),
    Column("difference", "largest difference", "gap"),
)


def _problems(quick: bool) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Yield each data set on each scale, in turn with the default classifier, another one and a regressor."""
    turn = 0
    for name, X, labels in data_sets(quick):
        for scale, Z in scales(X):
            what = f"{name}, {scale}"
            yield what, CLASSIFIERS[0], C, Z, labels
            other = CLASSIFIERS[1 + turn % (len(CLASSIFIERS) - 1)]
            two = getattr(other, "solver", "") == "liblinear"  # which has no more classes
            yield what, other, C, Z, (labels == labels[0]).astype(int) if two else labels
            y = regression_targets(Z)[turn % len(REGRESSORS)]
            regressor = REGRESSORS[turn % len(REGRESSORS)]
            yield what, regressor, C if hasattr(regressor, "C") else ALPHA, Z, y
            turn += 1


def gradient_sizes(estimator: Any, X: Any, y: Any) -> float:
    """Return the gradient at a fitted estimator in units of its `tol`, by plain formulas."""
    X, tol = np.asarray(X, dtype=np.float64), estimator.tol
    coef = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
    n, intercept = len(X), np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64))
    Z = X @ coef.T + intercept
    if isinstance(estimator, (LinearSVC, LinearSVR)) or getattr(estimator, "solver", "") == "liblinear":
        return _of_machine(estimator, X, y, Z, coef, intercept) / tol
    if isinstance(estimator, LogisticRegression):
        penalty = 1.0 / (estimator.C * n)
        if Z.shape[1] == 1:
            R = 1.0 / (1.0 + np.exp(-Z)) - (y == estimator.classes_[1])[:, None]
        else:
            E = np.exp(Z - Z.max(axis=1, keepdims=True))
            R = E / E.sum(axis=1, keepdims=True) - (np.asarray(y)[:, None] == estimator.classes_)
    else:
        penalty, mean = estimator.alpha, np.exp(Z)
        R = mean - y[:, None] if isinstance(estimator, PoissonRegressor) else 1.0 - y[:, None] / mean
    largest = max(np.abs(R.T @ X / n + penalty * coef).max(), np.abs(R.mean(axis=0)).max())
    return float(largest) / tol


def _of_machine(estimator: Any, X: Any, y: Any, Z: Any, coef: Any, intercept: Any) -> float:
    """Return liblinear's gradient norm relative to that at zero and to the share of the rarer class."""
    A, W, worst = np.c_[X, np.ones(len(X))], np.c_[coef, intercept], 0.0
    for k in range(len(W)):
        if isinstance(estimator, LinearSVR):
            off, zero, share = Z[:, k] - y, -np.asarray(y, dtype=float), 1.0
            slopes = [np.sign(v) * np.maximum(np.abs(v) - estimator.epsilon, 0.0) for v in (off, zero)]
        else:
            side = np.where(np.asarray(y) == estimator.classes_[k if len(W) > 1 else 1], 1.0, -1.0)
            both = (Z[:, k], 0.0 * Z[:, k])
            if isinstance(estimator, LogisticRegression):
                slopes = [-0.5 * side * expit(-side * z) for z in both]
            else:
                slopes = [-side * np.maximum(1.0 - side * z, 0.0) for z in both]
            share = float(min((side > 0).mean(), (side < 0).mean()))
        if getattr(estimator, "l1_ratio", 0) == 1:
            off = [
                _violation(estimator.C * A.T @ s, w) for s, w in zip(slopes, (W[k], 0 * W[k]), strict=True)
            ]
            worst = max(worst, off[0] / max(share * off[1], 1e-300))
            continue
        here, start = 2 * estimator.C * (A.T @ np.stack(slopes, axis=1)).T
        worst = max(worst, np.linalg.norm(here + W[k]) / np.linalg.norm(start) / share)
    return worst


def _violation(slopes: np.ndarray, w: np.ndarray) -> float:
    """Return how far the subgradients of an l1 penalty are from zero, in sum; slopes are halved."""
    at_zero = np.maximum(np.abs(2 * slopes) - 1.0, 0.0)
    return float(np.where(w == 0, at_zero, np.abs(2 * slopes + np.sign(w))).sum())


def _meet_tol(estimator: Any, grid: Any, X: Any, y: Any) -> np.ndarray:
    """Return whether scikit-learn's own fit of each setting on each split meets its tolerance."""
    ((name, values),) = grid.items()
    met = []
    for train, _ in check_cv(FOLDS, y, classifier=is_classifier(estimator)).split(X, y):
        for value in values:
            fitted = clone(estimator).set_params(**{name: value})
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                fitted.fit(X[train], y[train])
                size = gradient_sizes(fitted, X[train], y[train])
            # 2 %: the last step, and rounding of a gradient that is measured by another formula.
            met.append(size <= 1.02 and np.max(fitted.n_iter_) < fitted.max_iter)
    return np.array(met).reshape(-1, len(values)).T


def _searched(cls: Any, estimator: Any, grid: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return cls(clone(estimator), grid, cv=FOLDS).fit(X, y)


def _measure(quick: bool, tell: Tell) -> Findings:
    counts: dict[str, Counter[str]] = {}
    largest: dict[str, float] = {}
    faults, start = [], time.perf_counter()
    for what, estimator, grid, X, y in _problems(quick):
        shown = str(estimator)
        tell(f"{what}: {shown}")
        own = counts.setdefault(shown, Counter())
        family = family_of(type(estimator))
        with mock.patch.object(family, "cost", return_value=Cost(0.0, 1.0)):
            ours = _searched(GridSearchCV, estimator, grid, X, y)
        theirs, met = _searched(Reference, estimator, grid, X, y), _meet_tol(estimator, grid, X, y)
        pairs = met.size
        report = ours.report_
        own.update(searches=1, fits=pairs, shared=report.fits_shared, met=int(met.sum()))
        scores = [
            np.stack([one.cv_results_[f"split{i}_test_score"] for i in range(FOLDS)], axis=1)
            for one in (ours, theirs)
        ]
        with np.errstate(invalid="ignore"):
            differ = ~np.isclose(*scores, rtol=0, atol=1e-9, equal_nan=True)
        # A score that is not scikit-learn's own was shared, so scikit-learn's fit must have met `tol`.
        wrong = differ & ~met
        own["wrong"] += int(wrong.sum())
        gap = float(np.nanmax(np.abs(scores[0] - scores[1]), initial=0.0))
        largest[shown] = max(largest.get(shown, 0.0), gap)
        if wrong.any():
            faults.append({"what": what, "estimator": shown, "where": np.argwhere(wrong).tolist()})
        if ours.best_params_ != theirs.best_params_:
            means = theirs.cv_results_["mean_test_score"]
            tied = means[theirs.best_index_] - means[ours.best_index_] <= 1e-9
            own["winners"] += 1
            own["untied"] += not (tied or theirs.best_params_ in report.as_good_as_best)
    rows = [
        {"estimator": name, **{column.key: own[column.key] for column in _COLUMNS[1:-1]},
         "difference": largest[name]}
        for name, own in counts.items()
    ]  # fmt: skip
    n = sum(own["searches"] for own in counts.values())
    n_wrong = sum(own["wrong"] for own in counts.values())
    n_untied = sum(own["untied"] for own in counts.values())
    verdicts = [
        at_most("scores shared where scikit-learn's fit did not meet tol: none", n_wrong, 0, "scores"),
        at_most("other winners that the report does not name as ties: none", n_untied, 0, "searches"),
    ]
    found = {"faults": faults, "searches": n, "seconds": time.perf_counter() - start}
    notes = (f"{n} searches of {FOLDS} folds; sharing whatever it costs.",)
    return Findings(rows, _COLUMNS, found, notes, verdicts)


register(
    Study(
        "convergence",
        "scores where scikit-learn's solvers stop early, on well and badly scaled data",
        _measure,
    )
)
