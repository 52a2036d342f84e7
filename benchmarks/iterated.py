"""Iterating families: logistic regression (dense and sparse), Poisson regression, linear SVMs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import logistic_regression_cv, manyfit, manyfit_optimum, searches
from benchmarks._floor import linear_passes_work
from benchmarks._task import Data, Task

# scikit-learn's scores differ from the optimum's by what its tol (default 1e-4) or max_iter leaves open.
NEAR = bars.same_scores(1e-2)


def _mixed(rng: np.random.Generator, rows: int, columns: int) -> NDArray[Any]:
    # mixed columns have a falling spectrum, like real data
    return np.asarray(rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns)) / columns**0.5)


def _binary(quick: bool) -> Data:
    rows, columns = (500, 10) if quick else (100_000, 100)
    rng = np.random.default_rng(0)
    X = _mixed(rng, rows, columns)
    y = rng.random(rows) < expit(X @ rng.normal(size=columns) / 3.0)
    return X, y.astype(int)


def _digits(quick: bool) -> Data:
    X, y = load_digits(return_X_y=True)
    rows = 500 if quick else 20_000
    index = np.arange(rows) % len(X)
    rng = np.random.default_rng(0)
    return X[index] / 16.0 + 0.1 * rng.normal(size=(rows, X.shape[1])), y[index]


def _words(quick: bool) -> Data:
    """Hashed documents of about 100 words each, by Zipf's law."""
    rows, columns = (300, 2**12) if quick else (20_000, 2**18)
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.3, size=(rows, 100)), 10**9) * 2654435761 % columns
    index = np.repeat(np.arange(rows), 100)
    X = sp.csr_matrix((np.ones(words.size), (index, words.ravel())), shape=(rows, columns))
    X.data = 1.0 + np.log(X.data)
    y = rng.random(rows) < expit(X @ rng.normal(size=columns) / 3.0)
    return X, y.astype(int)


def _counts(quick: bool) -> Data:
    rows, columns = (500, 5) if quick else (100_000, 50)
    rng = np.random.default_rng(0)
    X = _mixed(rng, rows, columns)
    return X, rng.poisson(np.exp(X @ rng.normal(size=columns) / 10.0 + 1.0)).astype(float)


def _logistic(exponents: tuple[float, float], n: int) -> Any:
    def task(quick: bool) -> Task:
        grid = {"C": np.logspace(*exponents, 2 if quick else n)}
        # With so many iterations scikit-learn's solver meets its tolerance and does not warn.
        return Task(LogisticRegression(max_iter=1000), grid, scoring="neg_log_loss")

    return task


def _poisson(quick: bool) -> Task:
    grid = {"alpha": np.logspace(-4, 1, 2 if quick else 8)}
    return Task(PoissonRegressor(max_iter=1000), grid, scoring="neg_mean_poisson_deviance")


def _linear_svc(quick: bool) -> Task:
    return Task(LinearSVC(dual=False), {"C": np.logspace(-3, 2, 2 if quick else 8)}, scoring="accuracy")


def _liblinear(quick: bool) -> Task:
    grid = {"C": np.logspace(-3, 2, 2 if quick else 8)}
    return Task(LogisticRegression(solver="liblinear"), grid, scoring="accuracy")


def _sparse(quick: bool) -> Task:
    grid = {"C": np.logspace(-3, 2, 2 if quick else 8)}
    model = LogisticRegression(solver="liblinear", l1_ratio=1.0, random_state=0)
    return Task(model, grid, scoring="neg_log_loss")


def _against_the_rest(quick: bool) -> Task:
    grid = {"estimator__C": np.logspace(-3, 2, 2 if quick else 8)}
    return Task(OneVsRestClassifier(LogisticRegression(solver="liblinear")), grid, scoring="accuracy")


def _informative(columns: int, n_classes: int) -> Any:
    def data(quick: bool) -> Data:
        n = 500 if quick else 20_000
        X, y = make_classification(n, columns, n_informative=10, n_classes=n_classes, random_state=0)
        return StandardScaler().fit_transform(X), y

    return data


def _sides(quick: bool) -> Data:
    rows, columns = (500, 5) if quick else (50_000, 50)
    rng = np.random.default_rng(0)
    X = _mixed(rng, rows, columns)
    return X, (X @ rng.normal(size=columns) + rng.normal(size=rows) > 0).astype(int)


LOGISTIC = register(
    Benchmark(
        name="logistic",
        summary="LogisticRegression, 10 C x 5 folds, neg_log_loss, 100,000 x 100",
        task=_logistic((-3, 2), 10),
        data=_binary,
        contenders=(*searches(), manyfit_optimum(), logistic_regression_cv()),
        bars=(bars.times_faster(8), bars.not_slower_than_best("specialised"), bars.cost_in_fits(2), NEAR),
        work=linear_passes_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="logistic-multinomial",
        summary="LogisticRegression of 10 classes, 6 C x 5 folds, neg_log_loss, 20,000 digits with noise",
        task=_logistic((-3, 1), 6),
        data=_digits,
        contenders=(*searches(manyfit(-1), manyfit()), manyfit_optimum()),
        # scikit-learn gives the scores that tol leaves open, so the gain would be less than two.
        bars=(bars.times_faster(0.9), NEAR),
        work=linear_passes_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="logistic-sparse",
        summary="LogisticRegression, 6 C x 5 folds, neg_log_loss, CSR 20,000 x 262,144 of hashed words",
        task=_logistic((-3, 2), 6),
        data=_words,
        contenders=(*searches(manyfit(-1), manyfit()), manyfit_optimum()),
        # Nearly separable: the gain would be less than two, and nothing is shared.
        bars=(bars.times_faster(0.9), bars.same_scores(0.1)),
        work=linear_passes_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="poisson",
        summary="PoissonRegressor, 8 alphas x 5 folds, deviance, 100,000 x 50",
        task=_poisson,
        data=_counts,
        contenders=(*searches(), manyfit_optimum()),
        bars=(bars.times_faster(6), NEAR),
        work=linear_passes_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="linear-svc",
        summary="LinearSVC, squared hinge, primal, 8 C x 5 folds, accuracy, 50,000 x 50",
        task=_linear_svc,
        data=_sides,
        contenders=(*searches(), manyfit_optimum()),
        bars=(bars.times_faster(5), NEAR),
        work=linear_passes_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="logistic-liblinear",
        summary="LogisticRegression(solver='liblinear'), 8 C x 5 folds, accuracy, 20,000 x 100",
        task=_liblinear,
        data=_informative(100, 2),
        contenders=searches(),
        bars=(bars.times_faster(5), NEAR),
        work=linear_passes_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="logistic-l1",
        summary="LogisticRegression of liblinear, l1 penalty, 8 C x 5 folds, neg_log_loss, 20,000 x 30",
        task=_sparse,
        data=_informative(30, 2),
        contenders=searches(),
        # scikit-learn fits all settings on the first split, so five folds gain five at most.
        bars=(bars.times_faster(2.5), NEAR),
        work=linear_passes_work,
        repeat=1,
    )
)
register(
    Benchmark(
        name="one-vs-rest",
        summary="OneVsRestClassifier(LogisticRegression(solver='liblinear')), 8 C x 5 folds, accuracy, "
        "3 classes, 20,000 x 30",
        task=_against_the_rest,
        data=_informative(30, 3),
        contenders=searches(),
        bars=(bars.times_faster(4), NEAR),
        work=linear_passes_work,
        repeat=3,
    )
)
