"""Data of everyday searches: seeded generators, and data sets that scikit-learn ships with."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_regression

Data = tuple[Any, Any]
NUMBERS = ["age", "income", "distance"]
WORDS = ["city", "job", "plan", "colour", "device"]


def classes(rows: int, columns: int = 20, n_classes: int = 2) -> functools.partial[Data]:
    """Return a function that makes data for classifiers."""
    return functools.partial(
        make_classification,
        rows,
        columns,
        n_informative=columns // 2,
        n_classes=n_classes,
        flip_y=0.1,
        random_state=0,
    )


def numbers(rows: int, columns: int = 20) -> functools.partial[Data]:
    """Return a function that makes data for regressors."""
    return functools.partial(make_regression, rows, columns, noise=20.0, random_state=0)


def counts(rows: int, columns: int) -> functools.partial[Data]:
    """Return a function that makes data for regressors of counts."""
    return functools.partial(_counts, rows, columns)


def frame(rows: int, *, labels: bool = True) -> functools.partial[Data]:
    """Return a function that makes a frame of numbers with gaps and of categories."""
    return functools.partial(_frame, rows, labels)


def texts(rows: int) -> functools.partial[Data]:
    """Return a function that makes documents of four classes."""
    return functools.partial(_texts, rows)


def breast_cancer() -> Data:
    """Return the breast cancer data, shuffled."""
    return _shuffled(*load_breast_cancer(return_X_y=True))


def digits() -> Data:
    """Return the digits."""
    X, y = load_digits(return_X_y=True)
    return X, y


def _shuffled(X: NDArray[Any], y: NDArray[Any]) -> Data:
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def _counts(rows: int, columns: int) -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    return X, rng.poisson(np.exp(X @ rng.normal(size=columns) / 10.0 + 1.0)).astype(float)


def _frame(rows: int, labels: bool) -> Data:
    import pandas as pd

    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {}
    signal = np.zeros(rows)
    for name in NUMBERS:
        values = rng.normal(size=rows)
        signal += values
        columns[name] = np.where(rng.random(rows) < 0.1, np.nan, values)
    for n, name in enumerate(WORDS):
        levels = 5 * (n + 1)
        codes = rng.integers(levels, size=rows)
        signal += rng.normal(size=levels)[codes]
        columns[name] = np.array([f"{name} {level}" for level in range(levels)], dtype=object)[codes]
    y = signal + 2.0 * rng.normal(size=rows)
    return pd.DataFrame(columns), (y > 0).astype(int) if labels else y


def _texts(rows: int) -> Data:
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"word{number}" for number in range(20_000)])
    y = rng.integers(4, size=rows)
    found = []
    for label in y:
        # Words by Zipf's law; a third of them from a part of the vocabulary that is the class's own.
        ranks = rng.zipf(1.3, size=100) % 10_000
        own = rng.random(100) < 0.3
        found.append(" ".join(vocabulary[np.where(own, 10_000 + 2_000 * label + ranks % 2_000, ranks)]))
    return found, y
