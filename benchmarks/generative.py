"""Classifiers that model the rows of each class: naive Bayes of texts and numbers, discriminant analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import manyfit, searches
from benchmarks._floor import class_moments_work, counts_work, gaussian_work
from benchmarks._task import Data, Task

SAME = bars.same_scores(1e-12)


def _count_data(quick: bool) -> Data:
    rows, columns = (300, 2_000) if quick else (20_000, 50_000)
    rng = np.random.default_rng(0)
    # Words by Zipf's law
    words = np.minimum(rng.zipf(1.3, size=(rows, 100)), 10**9) * 2654435761 % columns
    index = np.repeat(np.arange(rows), 100)
    X = sp.csr_matrix((np.ones(words.size), (index, words.ravel())), shape=(rows, columns))
    X.sum_duplicates()
    return X, (X @ rng.normal(size=columns) > 0).astype(int)


def _classes_of_normals(rows: int, columns: int, n_classes: int) -> Any:
    def data(quick: bool) -> Data:
        rng, n = np.random.default_rng(0), 500 if quick else rows
        y = rng.integers(0, n_classes, n)
        return rng.normal(size=(n, columns)) + 0.3 * rng.normal(size=(n_classes, columns))[y], y

    return data


def _alphas(quick: bool) -> NDArray[np.float64]:
    return np.logspace(-3, 1, 2 if quick else 10)


def _gaussian_task(quick: bool) -> Task:
    return Task(GaussianNB(), {"var_smoothing": np.logspace(-9, 0, 2 if quick else 20)})


def _linear_task(quick: bool) -> Task:
    grid = {"shrinkage": np.linspace(0.05, 0.95, 2 if quick else 10)}
    return Task(LinearDiscriminantAnalysis(solver="lsqr"), grid)


register(
    Benchmark(
        name="naive-bayes-text",
        summary="MultinomialNB, 10 alphas x 5 folds, CSR 20,000 x 50,000 of counted words",
        task=lambda quick: Task(MultinomialNB(), {"alpha": _alphas(quick)}),
        data=_count_data,
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(4), SAME),
        work=counts_work,
        repeat=5,
    )
)
register(
    Benchmark(
        name="gaussian-nb",
        summary="GaussianNB, 20 var_smoothing x 5 folds, 20,000 x 30",
        task=_gaussian_task,
        data=_classes_of_normals(20_000, 30, 3),
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(15), SAME),
        work=gaussian_work,
        repeat=7,
    )
)
register(
    Benchmark(
        name="lda",
        summary="LinearDiscriminantAnalysis, lsqr, 10 shrinkages x 5 folds, 50,000 x 100, 10 classes",
        task=_linear_task,
        data=_classes_of_normals(50_000, 100, 10),
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(10), SAME),
        work=class_moments_work,
        repeat=5,
    )
)
