"""Two workers of one thread each: speed, overhead of a search, shared work, checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks import _bars as bars
from benchmarks import _on_workers as on
from benchmarks import iterated, pipelines
from benchmarks._benchmark import Benchmark, register
from benchmarks._bytes import measure_bytes
from benchmarks._contenders import sklearn
from benchmarks._floor import linear_passes_work, moments_work, reading_work
from benchmarks._slots import measure_slots
from benchmarks._study import Study
from benchmarks._task import Data, Task
from benchmarks._timed import Spins

_LOKY = f"scikit-learn n_jobs={on.WORKERS}"
# scikit-learn in this process is its first contender: its fits define the ideal. joblib's backend for Dask
# comes last: if it is stopped, the tasks that it has sent still run.
_GENERIC = (on.manyfit(), sklearn(None), sklearn(on.WORKERS), on.dask_ml(), on.joblib_dask())
_NOT_SLOWER = tuple(bars.not_slower_than(name) for name in (_LOKY, on.JOBLIB_DASK, on.DASK_ML))


def _boosting(quick: bool) -> Task:
    grid: dict[str, Any] = {
        "learning_rate": (0.03, 0.1) if quick else (0.03, 0.06, 0.1, 0.2),
        "max_leaf_nodes": (4,) if quick else (7, 15, 31),
        "max_iter": (2,) if quick else (50, 100),
    }
    return Task(HistGradientBoostingClassifier(early_stopping=False, random_state=0), grid)


def _two_classes(quick: bool) -> Data:
    rows = 500 if quick else 4_000
    X, y = make_classification(rows, 20, n_informative=8, random_state=0)
    return X, y


def _spinning(seconds: float, settings: int) -> Any:
    def task(quick: bool) -> Task:
        return Task(Spins(seconds), {"value": np.linspace(-1.0, 1.0, 4 if quick else settings)})

    return task


def _small(quick: bool) -> Data:
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 4)), rng.normal(size=200)


register(
    Benchmark(
        name="cluster-generic",
        summary="HistGradientBoosting, 24 settings x 5 folds, 4,000 x 20, on two workers",
        task=_boosting,
        data=_two_classes,
        contenders=_GENERIC,
        bars=(bars.near_ideal(0.95), *_NOT_SLOWER, bars.same_scores(0.0)),
        work=reading_work,
        repeat=3,
        separate_steps=True,
        around=on.one_thread_each,
        cores=on.WORKERS,
    )
)
register(
    Benchmark(
        name="cluster-overhead",
        summary="1,000 settings x 5 folds of an estimator that takes 1 ms, on two workers",
        task=_spinning(1e-3, 1000),
        data=_small,
        contenders=_GENERIC,
        bars=(bars.over_ideal(1.0), *_NOT_SLOWER, bars.same_scores(0.0)),
        work=reading_work,
        repeat=3,
        most_seconds=60.0,
        separate_steps=True,
        around=on.one_thread_each,
        cores=on.WORKERS,
    )
)
register(
    Benchmark(
        name="cluster-checkpoint",
        summary="200 settings x 5 folds of an estimator that takes 2 ms, with checkpoint= and without",
        task=_spinning(2e-3, 200),
        data=_small,
        contenders=(
            on.manyfit("other"),
            on.manyfit_with_checkpoint(here=False),
            on.manyfit_here(),
            on.manyfit_with_checkpoint(here=True),
        ),
        bars=(
            bars.share_over(0.05, on.WITH_CHECKPOINT, on.OURS),
            bars.share_over(0.05, on.HERE_WITH_CHECKPOINT, on.HERE),
            bars.same_scores(0.0),
        ),
        work=reading_work,
        repeat=7,
        separate_steps=True,
        around=on.one_thread_each,
        cores=on.WORKERS,
        reference=on.HERE,
    )
)


def _shared(of: Benchmark, name: str, summary: str, work: Any, scores: float) -> None:
    """Run the task of another benchmark on the cluster, and the same search in this process."""
    register(
        Benchmark(
            name=name,
            summary=summary,
            task=of.task,
            data=of.data,
            contenders=(on.manyfit(), on.manyfit(again=True), on.manyfit_here()),
            bars=(
                bars.over(0.3, on.OURS, on.HERE),
                bars.over(0.3, on.OURS_AGAIN, on.HERE),
                bars.same_scores(scores),  # sums by two threads round differently than by one
            ),
            work=work,
            repeat=5,
            around=on.two_workers,
            reference=on.HERE,
        )
    )


_shared(
    pipelines.AFFINE,
    "cluster-shared-affine",
    "affine-pipeline on two workers, beside the same search in this process",
    moments_work,
    1e-12,
)
_shared(
    iterated.LOGISTIC,
    "cluster-shared-logistic",
    "logistic on two workers, beside the same search in this process",
    linear_passes_work,
    1e-6,  # iterative fits stop elsewhere, within what their tol allows
)
register(
    Study(
        name="cluster-bytes",
        summary="bytes sent for 6 settings x 5 folds on 40 MB, the first and the second time",
        measure=measure_bytes,
    )
)
register(
    Study(
        name="cluster-slots",
        summary="slots that one client and one scheduler keep 90 % busy with fits of 100 ms and 1 s",
        measure=measure_slots,
    )
)
