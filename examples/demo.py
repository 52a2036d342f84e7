"""Three searches on real data, with manyfit and with scikit-learn: ``python -m examples.demo``.

1. Diabetes with a pipeline of affine steps and Ridge: moments from one pass answer the whole grid.
2. Digits with logistic regression: each iteration serves all settings and folds.
3. Digits with a support vector machine: the steps before it are shared, its own fits are not.

Each search shows its plan, a progress bar, a table beside scikit-learn and its report. A figure of all
comes last.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV as SklearnGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from examples._figure import Panel, draw
from manyfit.model_selection import GridSearchCV

_FIGURE = Path(__file__).parent / "demo.png"


@dataclass(frozen=True)
class Example:
    """One search.

    ``axis`` names the parameter along x, and ``lines`` the one that the figure draws as lines, if any.
    scikit-learn searches once more with the parameters ``tighter`` of the estimator; ``note`` says why.
    """

    title: str
    estimator: Any
    grid: Mapping[str, Any]
    data: tuple[NDArray[Any], NDArray[Any]]
    n_jobs: int | None
    axis: str
    lines: str | None
    score: str
    scoring: str | None = None
    tighter: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    """A fitted search, its seconds, and its name in the table."""

    search: Any
    seconds: float
    name: str = ""


def examples() -> list[Example]:
    """Return the three searches."""
    affine = Example(
        title="diabetes: StandardScaler > PCA > Ridge",
        estimator=make_pipeline(StandardScaler(), PCA(), Ridge()),
        grid={"pca__n_components": list(range(1, 11)), "ridge__alpha": np.logspace(-1, 4, 10)},
        data=load_diabetes(return_X_y=True),
        n_jobs=None,
        axis="ridge__alpha",
        lines="pca__n_components",
        score="R2, mean of 5 folds",
    )
    logistic = Example(
        title="digits, odd or even: StandardScaler > LogisticRegression",
        estimator=make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        grid={"logisticregression__C": np.logspace(-3.5, 1, 10)},
        data=_odd_or_even(),
        n_jobs=None,
        axis="logisticregression__C",
        lines=None,
        score="negative log loss, mean of 5 folds",
        scoring="neg_log_loss",
        tighter={"logisticregression__tol": 1e-6},
        note="scores differ by what scikit-learn's own tol (1e-4) leaves open: manyfit continues to 1e-6",
    )
    svc = Example(
        title="digits: StandardScaler > PCA > SVC",
        estimator=make_pipeline(StandardScaler(), PCA(), SVC()),
        grid={
            "pca__n_components": [8, 16, 32],
            "svc__gamma": np.logspace(-3.5, -1.5, 5),
            "svc__C": [1.0, 10.0],
        },
        data=load_digits(return_X_y=True),
        n_jobs=-1,
        axis="svc__gamma",
        lines="pca__n_components",
        score="accuracy, mean of 5 folds",
    )
    return [affine, logistic, svc]


def _odd_or_even() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = load_digits(return_X_y=True)
    return X, y % 2


def main() -> None:
    """Run the examples, print the results and save the figure."""
    _start_workers()
    panels = []
    for example in examples():
        print(f"\n=== {example.title} ===\n")
        ours = _run_ours(example)
        theirs = [_run_sklearn(example, n_jobs) for n_jobs in dict.fromkeys((example.n_jobs, -1))]
        tighter = [_run_sklearn(example, -1, example.tighter)] if example.tighter else []
        print(f"\n{_table(ours, theirs, tighter)}")
        if ours.search.report_.fits_done:
            print(_why_no_more(example, ours))
        if tighter:
            gap = _difference(ours, tighter[0])
            print(f"{example.note}, and differs by {gap:.1e} from {tighter[0].name}")
        print(f"\n{ours.search.report_}")
        panels.append(_panel(example, ours, min(theirs, key=lambda outcome: outcome.seconds)))
    draw(panels, _FIGURE)
    print(f"\nfigure: {_FIGURE}")


def _start_workers() -> None:
    """Start the worker processes, so that neither of two searches with ``n_jobs=-1`` pays for it."""
    print("Starting worker processes, which import scikit-learn and manyfit once ...", flush=True)
    estimators = [example.estimator for example in examples()]  # whose modules the workers import
    Parallel(n_jobs=-1)(delayed(_import_in_worker)(estimators) for _ in range(2 * cpu_count()))


def _import_in_worker(estimators: Any) -> None:
    """Import the modules that fits of both libraries need: about a second, once in each process."""
    import_module("manyfit.model_selection")


def _why_no_more(example: Example, ours: Outcome) -> str:
    """Say what is not shared, and measure on one fit how long the shared steps take."""
    X, y = example.data
    model = clone(example.estimator)
    start = time.perf_counter()
    behind = model[:-1].fit_transform(X, y)
    model[:-1].transform(X)
    steps = time.perf_counter() - start
    model[-1].fit(behind, y).predict(behind)
    whole = time.perf_counter() - start
    report, name = ours.search.report_, type(model[-1]).__name__
    return (
        f"manyfit made {report.fits_done} fits of {name}, as many as scikit-learn. It shares the steps "
        f"before {name}, and what the fits have in common.\nThe steps take {steps / whole:.0%} of the time "
        "of a fit and its scores: sharing them alone makes the search at most "
        f"{whole / (whole - steps):.2f} times as fast."
    )


def _run_ours(example: Example) -> Outcome:
    search = GridSearchCV(
        example.estimator, example.grid, cv=5, n_jobs=example.n_jobs, scoring=example.scoring, verbose=1
    )
    print(search.plan(*example.data), flush=True)
    return _fit(search, example, f"manyfit n_jobs={example.n_jobs}")


def _run_sklearn(example: Example, n_jobs: int | None, params: Mapping[str, Any] | None = None) -> Outcome:
    estimator = clone(example.estimator).set_params(**(params or {}))
    changed = {name.rpartition("__")[2]: value for name, value in (params or {}).items()}
    shown = " ".join(f"{name}={value}" for name, value in {"n_jobs": n_jobs, **changed}.items())
    search = SklearnGridSearchCV(estimator, example.grid, cv=5, n_jobs=n_jobs, scoring=example.scoring)
    return _fit(search, example, f"scikit-learn {shown}")


def _fit(search: Any, example: Example, name: str) -> Outcome:
    start = time.perf_counter()
    search.fit(*example.data)
    return Outcome(search, time.perf_counter() - start, name)


def _table(ours: Outcome, theirs: list[Outcome], tighter: list[Outcome]) -> str:
    head = f"{'one run with its refit':34}{'time':>10}{'times':>9}{'best score':>13}{'difference':>13}"
    lines = [head, "-" * len(head)]
    best = min(outcome.seconds for outcome in theirs)
    for outcome in (ours, *theirs, *tighter):
        lines.append(
            f"{outcome.name:34}{outcome.seconds:8.3f} s{best / outcome.seconds:9.3g}"
            f"{outcome.search.best_score_:13.6f}"
            f"{_difference(outcome, theirs[0]):13.1e}"
        )
    lines.append(
        "times: relative to the fastest scikit-learn; difference: the largest over all settings and splits"
    )
    same = ours.search.best_params_ == theirs[0].search.best_params_
    chosen = ", ".join(f"{name} = {value:.4g}" for name, value in ours.search.best_params_.items())
    lines.append(f"chosen: {chosen}; {'the same' if same else 'ANOTHER'} setting as scikit-learn's")
    return "\n".join(lines)


def _difference(outcome: Outcome, reference: Outcome) -> float:
    """Return the largest difference of the test scores over all settings and splits."""
    names = [f"split{split}_test_score" for split in range(reference.search.n_splits_)]
    pairs = ((outcome.search.cv_results_[name], reference.search.cv_results_[name]) for name in names)
    return max(float(np.max(np.abs(first - second))) for first, second in pairs)


def _panel(example: Example, ours: Outcome, theirs: Outcome) -> Panel:
    others = [name for name in example.grid if name not in (example.axis, example.lines)]
    best = f" at its best {', '.join(others)}" if others else ""
    by = f", by {example.lines}{best}" if example.lines else ""
    return Panel(
        title=example.title,
        axis=example.axis,
        lines=by,
        score=example.score,
        ours=_curves(example, ours),
        theirs=_curves(example, theirs),
        seconds={"manyfit": ours.seconds, f"scikit-learn\nn_jobs={theirs.search.n_jobs}": theirs.seconds},
        fits=len(ours.search.cv_results_["params"]) * ours.search.n_splits_,
        difference=_difference(ours, theirs),
    )


def _curves(example: Example, outcome: Outcome) -> dict[Any, tuple[NDArray[Any], NDArray[Any]]]:
    """Return x and the best score over the other parameters, for each value that is drawn as a line."""
    found: dict[Any, dict[float, float]] = {}
    results = outcome.search.cv_results_
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        value = params[example.lines] if example.lines else None
        line, x = found.setdefault(value, {}), float(params[example.axis])
        line[x] = max(score, line.get(x, -np.inf))
    return {
        value: (np.array(sorted(line)), np.array([line[x] for x in sorted(line)]))
        for value, line in found.items()
    }


if __name__ == "__main__":
    main()
