"""Selectors of features and permutation tests whose fits share one pass over the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import feature_selection, model_selection
from sklearn.linear_model import Ridge

from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._task import Data
from benchmarks._verdict import at_least, at_most

# Permutations on which scikit-learn is timed; all others take as long.
TIMED = 20
ROUNDS = 3
_COLUMNS = (
    Column("what", "by"),
    Column("cpu", "CPU time", "s"),
    Column("ratio", "ratio", "number"),
    Column("gap", "difference", "gap"),
)


def _data(n: int, p: int) -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.05 * rng.normal(size=(p, p)))
    return X, X @ (rng.normal(size=p) * np.linspace(2.0, 0.0, p)) + 3.0 * rng.normal(size=n)


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def _findings(
    ours: float, theirs: float, title: str, gap: float, least: float, found: dict[str, Any], note: str
) -> Findings:
    rows = [
        {"what": "manyfit", "cpu": ours, "ratio": theirs / ours, "gap": gap},
        {"what": title, "cpu": theirs, "ratio": 1.0, "gap": None},
    ]
    verdicts = [
        at_least(f"at least {least:g} times scikit-learn", theirs / ours, least, "times"),
        at_most("the same features, ranks and p-value, and scores within 1e-9", gap, 1e-9, "apart"),
    ]
    return Findings(rows, _COLUMNS, found, (note,), verdicts)


def _selector(name: str, least: float, quick_options: Any, options: Any) -> Callable[[bool, Tell], Findings]:
    def measure(quick: bool, tell: Tell) -> Findings:
        import manyfit.feature_selection

        X, y = _data(*((300, 8) if quick else (20_000, 60)))
        given = quick_options if quick else options
        tell("scikit-learn")
        used, theirs = _timed(lambda: getattr(feature_selection, name)(Ridge(), **given).fit(X, y))
        runs = []
        for one in range(ROUNDS):
            tell(f"round {one + 1}")
            selector = getattr(manyfit.feature_selection, name)(Ridge(), **given)
            runs.append(_timed(lambda selector=selector: selector.fit(X, y)))
        ours = runs[0][1]
        same = np.array_equal(ours.support_, theirs.support_)
        gap = 0.0 if same else np.inf
        if hasattr(theirs, "cv_results_"):
            gap = max(gap, _gap(ours.cv_results_, theirs.cv_results_))
        report = ours.report_
        found = {"fits": report.fits_requested, "shared": report.fits_shared, "passes": report.passes}
        asked, shared = report.fits_requested, report.fits_shared
        note = f"{asked:,} fits asked for, {shared:,} shared, {report.passes:g} passes."
        return _findings(min(s for s, _ in runs), used, "scikit-learn", gap, least, found, note)

    return measure


def _gap(ours: dict[str, NDArray[Any]], theirs: dict[str, NDArray[Any]]) -> float:
    return max(float(np.abs(ours[name] * 1.0 - found * 1.0).max()) for name, found in theirs.items())


def _permutations(quick: bool, tell: Tell) -> Findings:
    from manyfit.model_selection import permutation_test_score

    n, timed = (20, 5) if quick else (1000, TIMED)
    X, y = _data(*((300, 8) if quick else (20_000, 100)))
    y = np.random.default_rng(1).permutation(y) + 0.05 * X[:, 0]
    tell("scikit-learn")
    theirs = model_selection.permutation_test_score
    used, few = _timed(lambda: theirs(Ridge(), X, y, n_permutations=timed, random_state=0))
    runs = []
    for one in range(ROUNDS):
        tell(f"round {one + 1}")
        runs.append(_timed(lambda: permutation_test_score(Ridge(), X, y, n_permutations=n, random_state=0)))
    score, scores, _ = runs[0][1]
    gap = max(abs(score - few[0]), float(np.abs(scores[:timed] - few[1]).max()))
    scaled = used * (n + 1) / (timed + 1)
    note = (
        f"scikit-learn is timed on y and the first {timed} of {n} permutations, and its time scaled. "
        "Both draw the same permutations; drawing them takes about half of manyfit's time."
    )
    title = f"scikit-learn, {timed} permutations scaled to {n}"
    return _findings(min(s for s, _ in runs), scaled, title, gap, 100.0, {}, note)


def _nested(quick: bool, tell: Tell) -> Findings:
    import manyfit
    from manyfit.model_selection import GridSearchCV, cross_val_score

    X, y = _data(*((300, 8) if quick else (20_000, 60)))
    grid = {"alpha": np.logspace(-2, 4, 4 if quick else 20)}
    tell("scikit-learn")
    search = model_selection.GridSearchCV(Ridge(), grid)
    used, theirs = _timed(lambda: model_selection.cross_val_score(search, X, y))
    runs = []
    for one in range(ROUNDS):
        tell(f"round {one + 1}")
        runs.append(_timed(lambda: cross_val_score(GridSearchCV(Ridge(), grid), X, y)))
    with manyfit.installed():
        model_selection.cross_val_score(search, X, y)
        report = manyfit.last_report()
    asked, shared, passes = report.fits_requested, report.fits_shared, report.passes
    note = f"{asked:,} scores, {shared:,} shared, {passes:g} passes."
    gap = float(np.abs(runs[0][1] - theirs).max())
    found = _findings(min(s for s, _ in runs), used, "scikit-learn", gap, 20.0, {"passes": passes}, note)
    return replace(found, verdicts=[at_most("at most 2 passes", passes, 2.0, "passes"), *found.verdicts])


register(
    Study(
        "nested-ridge",
        "cross_val_score of GridSearchCV, Ridge, 20 alphas, five inner and outer folds of 20,000 x 60",
        _nested,
    )
)
register(
    Study(
        "sfs-moments",
        "SequentialFeatureSelector, forward to 20 of 60 features, Ridge, five folds of 20,000 rows",
        _selector(
            "SequentialFeatureSelector", 100.0, {"n_features_to_select": 3}, {"n_features_to_select": 20}
        ),
    )
)
register(
    Study(
        "rfecv-moments",
        "RFECV, from 60 features, Ridge, five folds of 20,000 rows",
        _selector("RFECV", 10.0, {}, {}),
    )
)
register(
    Study(
        "permutation-ridge",
        "permutation_test_score, 1,000 permutations, Ridge, five folds of 20,000 x 100",
        _permutations,
    )
)
