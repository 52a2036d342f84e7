"""Ridge on the diabetes data, repeated until it no longer fits a cache."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, Contender, register
from benchmarks._contenders import himalaya_ridge_cv, ridge_cv, searches
from benchmarks._floor import moments_work
from benchmarks._task import Data, Task


def _task(quick: bool) -> Task:
    return Task(Ridge(), {"alpha": np.logspace(-3, -1, 2 if quick else 10)}, scoring="r2")


def _diabetes(repeats: int) -> Data:
    X, y = load_diabetes(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, train_size=0.8, random_state=0)
    return np.tile(X, (repeats, 1)), np.tile(y, repeats)


def _ridge(
    size: str,
    repeats: int,
    *,
    repeat: int,
    asked: tuple[bars.Bar, ...],
    others: tuple[Contender, ...] = (),
) -> Benchmark:
    return Benchmark(
        name=f"ridge-{size}",
        summary=f"Ridge, 10 alphas x 5 folds, r2, 80 % of diabetes x {repeats:,}",
        task=_task,
        data=lambda quick: _diabetes(min(repeats, 2) if quick else repeats),
        contenders=(*searches(), ridge_cv(5), ridge_cv(None), *others),
        bars=(*asked, bars.same_scores(1e-9)),
        work=moments_work,
        repeat=repeat,
    )


# No requirement on memory: 28 kB are less than the objects of any search.
register(_ridge("28kB", 1, repeat=25, asked=(bars.times_faster(8),), others=(himalaya_ridge_cv(),)))
register(_ridge("2.8MB", 100, repeat=15, asked=(bars.times_faster(30), bars.peak_memory(0.3))))
register(
    _ridge(
        "28MB",
        1000,
        repeat=7,
        asked=(
            bars.times_faster(35),
            bars.not_slower_than_best("specialised"),
            bars.peak_memory(0.3),
        ),
    )
)
