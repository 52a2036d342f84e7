"""The cost of a search without its fits: estimators that do next to nothing."""

from __future__ import annotations

from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import searches
from benchmarks._floor import reading_work
from benchmarks._task import Task


def _task(quick: bool) -> Task:
    strategies = ("most_frequent", "prior", "stratified", "uniform")
    return Task(DummyClassifier(), {"strategy": strategies, "random_state": range(1 if quick else 250)})


register(
    Benchmark(
        name="overhead",
        summary="DummyClassifier, 1,000 settings x 5 folds, iris: what is spent around the fits",
        task=_task,
        data=lambda quick: load_iris(return_X_y=True),
        contenders=searches(),
        bars=(bars.not_slower_than("scikit-learn n_jobs=None"), bars.same_scores(0.0)),
        work=reading_work,
        repeat=5,
        separate_steps=True,
    )
)
