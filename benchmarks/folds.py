"""Ridge on many folds: what they cost beside one pass over X, and leaving out one row at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV as Reference
from sklearn.model_selection import KFold, LeaveOneOut
from threadpoolctl import threadpool_limits

from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._task import Data
from benchmarks._verdict import at_least, at_most

# Folds on which scikit-learn is timed; its fits take as long on all others.
TIMED_FOLDS = 50
ROUNDS = 3
# Rows that are left out take so many iterations here, counted. Rows that fit the last cache are multiplied by
# all vectors before the next.
ITERATIONS, BLOCK_ROWS = 3, 2000
_COLUMNS = (
    Column("what", "search"),
    Column("cpu", "CPU time", "s"),
    Column("ratio", "ratio", "number"),
    Column("gap", "difference", "gap"),
)


def _data(n: int, p: int) -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.05 * rng.normal(size=(p, p)))
    return X, X @ rng.normal(size=p) + 5.0 * rng.normal(size=n)


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def _gap(ours: Any, theirs: Any, folds: int) -> float:
    names = [f"split{i}_test_score" for i in range(folds)]
    return float(max(np.abs(ours.cv_results_[name] - theirs.cv_results_[name]).max() for name in names))


def _leave_one_out(quick: bool, tell: Tell) -> Findings:
    from manyfit.model_selection import GridSearchCV

    n, p = (200, 5) if quick else (5000, 50)
    X, y = _data(n, p)
    alphas, scoring = np.logspace(-2, 3, 3 if quick else 10), "neg_mean_squared_error"
    some = list(LeaveOneOut().split(X))[: 10 if quick else TIMED_FOLDS]
    seconds: dict[str, list[float]] = {"ours": [], "theirs": [], "cv": []}
    for one in range(ROUNDS):
        tell(f"round {one + 1}")
        ours = GridSearchCV(Ridge(), {"alpha": alphas}, cv=LeaveOneOut(), scoring=scoring)
        theirs = Reference(Ridge(), {"alpha": alphas}, cv=some, scoring=scoring)
        rival = RidgeCV(alphas)
        for name, search in (("ours", ours), ("theirs", theirs), ("cv", rival)):
            seconds[name].append(_timed(lambda search=search: search.fit(X, y))[0])
    best = {name: min(values) for name, values in seconds.items()}
    scaled, gap = best["theirs"] * n / len(some), _gap(ours, theirs, len(some))
    rows = [
        {"what": "manyfit", "cpu": best["ours"], "ratio": scaled / best["ours"], "gap": gap},
        {"what": f"scikit-learn, {len(some)} folds scaled to {n}", "cpu": scaled, "ratio": 1.0, "gap": None},
        {"what": "RidgeCV", "cpu": best["cv"], "ratio": scaled / best["cv"], "gap": None},
    ]
    same = float(ours.best_params_["alpha"] == rival.alpha_)
    notes = (
        f"scikit-learn's search is timed on {len(some)} of {n} folds, since all would take minutes; its time "
        "is scaled by the number of folds. Each search and RidgeCV include one refit. The ratio is that to "
        "scikit-learn; differences are those on the folds that both have. The floor is RidgeCV.",
    )
    verdicts = [
        at_least("at least 300 times scikit-learn", rows[0]["ratio"], 300.0, "times"),
        at_most("scores within 1e-9 of scikit-learn's", gap, 1e-9, "apart"),
        at_least("the alpha of RidgeCV", same, 1.0, "of it"),
    ]
    return Findings(rows, _COLUMNS, {"seconds": seconds}, notes, verdicts)


def _one_pass(X: NDArray[Any], y: NDArray[Any]) -> Any:
    from manyfit.folds import NumPyRows

    return NumPyRows(X).moments(y[:, None], [slice(0, len(X))])


def _left_out_products(X: NDArray[Any], k: int) -> None:
    """Only the products that k sets of left-out rows take once the moments are known.

    Those of the rows are one for the residuals of the fit of all rows and two for each iteration; between
    these two comes one with the inverse of the scatter.
    """
    n, p = X.shape
    v, of_sets, inverse = np.ones(p), np.ones((k, p)), np.eye(p)
    for start in range(0, n, BLOCK_ROWS):
        for _ in range(1 + 2 * ITERATIONS):
            X[start : start + BLOCK_ROWS] @ v
    for _ in range(ITERATIONS):
        of_sets @ inverse


def _cvmatrix_scores(X: NDArray[Any], y: NDArray[Any], k: int, *, solves: bool) -> list[float]:
    """R2 of Ridge with alpha 1 on each of k folds, from cvmatrix's moments of their training rows.

    Not `solves`: the moments alone. cvmatrix sums all rows once, and subtracts the test rows of each fold.
    """
    from cvmatrix import CVMatrix  # type: ignore[import-not-found]

    sums, scores = CVMatrix(scale_X=False, scale_Y=False, copy=False), []
    sums.fit(X, y)
    for _, test in KFold(k).split(X):
        (xx, xy), (x_mean, _, y_mean, _) = sums.training_XTX_XTY(test)
        if solves:
            xx[np.diag_indices_from(xx)] += 1.0
            coef = linalg.solve(xx, xy, assume_a="pos")
            scores.append(r2_score(y[test], ((X[test] - x_mean) @ coef + y_mean).ravel()))
    return scores


def _beside(X: NDArray[Any], y: NDArray[Any], counts: tuple[int, ...], tell: Tell) -> list[dict[str, Any]]:
    """Rows for cvmatrix, if it is installed."""
    if find_spec("cvmatrix") is None:
        return []
    rows = []
    for k in counts:
        tell(f"cvmatrix, {k} folds")
        theirs = Reference(Ridge(), {"alpha": [1.0]}, cv=list(KFold(k).split(X))[:2], refit=False).fit(X, y)
        for title, solves in (("moments of the training rows alone", False), ("and one solution each", True)):
            runs = [
                _timed(lambda k=k, solves=solves: _cvmatrix_scores(X, y, k, solves=solves))
                for _ in range(ROUNDS)
            ]
            expected = [theirs.cv_results_[f"split{i}_test_score"][0] for i in range(2)]
            gap = float(np.abs(np.subtract(runs[0][1][:2], expected)).max()) if solves else None
            rows.append(
                {"what": f"cvmatrix, {k} folds: {title}", "cpu": min(used for used, _ in runs), "gap": gap}
            )
    return rows


def _many_folds(quick: bool, tell: Tell) -> Findings:
    from manyfit.model_selection import GridSearchCV

    X, y = _data(*((400, 10) if quick else (100_000, 500)))
    counts = (5, 20, 50) if quick else (5, 100, 1000)
    seconds: dict[str, list[float]] = {"pass": [], "products": [], **{str(k): [] for k in counts}}
    searches = {}
    for one in range(ROUNDS):
        tell(f"round {one + 1}")
        seconds["pass"].append(_timed(lambda: _one_pass(X, y))[0])
        seconds["products"].append(_timed(lambda: _left_out_products(X, counts[2]))[0])
        for k in counts:
            search = GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=k, scoring="r2", refit=False)
            used, searches[k] = _timed(lambda search=search: search.fit(X, y))
            seconds[str(k)].append(used)
    best = {name: min(values) for name, values in seconds.items()}
    floor = best["pass"]
    method = floor + best["products"]
    rows = [
        {"what": "one pass over X, the floor", "cpu": floor, "ratio": 1.0, "gap": None},
        {
            "what": f"and the products of {counts[2]} folds alone",
            "cpu": method,
            "ratio": method / floor,
            "gap": None,
        },
    ]
    gaps = []
    for k, search in searches.items():
        some = list(KFold(k).split(X))[:2]
        theirs = Reference(Ridge(), {"alpha": [1.0]}, cv=some, scoring="r2", refit=False).fit(X, y)
        gaps.append(_gap(search, theirs, 2))
        cpu = best[str(k)]
        rows.append({"what": f"{k} folds", "cpu": cpu, "ratio": cpu / floor, "gap": gaps[-1]})
    rows += [{**row, "ratio": row["cpu"] / floor} for row in _beside(X, y, counts, tell)]
    few, some_folds, most = (best[str(k)] for k in counts)
    verdicts = [
        at_most(f"{counts[2]} folds: at most 1.3 times one pass", most / floor, 1.3, "times"),
        at_most(f"{counts[1]} folds: at most 1.1 times {counts[0]}", some_folds / few, 1.1, "times"),
        at_most("scores within 1e-9 of scikit-learn's", max(gaps), 1e-9, "apart"),
    ]
    notes = (
        "Ratios are those to one pass over X that sums all moments. Differences are on two folds. "
        "cvmatrix (arXiv 2401.13185) has no search: its moments are solved by Cholesky's method, one fold "
        "after the other.",
    )
    return Findings(rows, _COLUMNS, {"seconds": seconds}, notes, verdicts)


register(Study("loo-ridge", "Ridge, 10 alphas, each of 5,000 rows left out, 50 columns", _leave_one_out))


def _many_folds_on_one_thread(quick: bool, tell: Tell) -> Findings:
    with threadpool_limits(1):  # a second thread that waits for small products counts as CPU time
        return _many_folds(quick, tell)


register(
    Study(
        "many-folds",
        "Ridge, one alpha, on 5, 100 and 1,000 folds of 100,000 x 500, one thread",
        _many_folds_on_one_thread,
    )
)
