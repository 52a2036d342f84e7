"""Data sets of many shapes and scales for linear models, scaled well and badly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.preprocessing import StandardScaler

Array = NDArray[Any]

# Arguments for `make_classification`: rows, columns, classes, distance of classes.
_MADE = ((300, 5, 2, 1.0), (2000, 20, 2, 1.0), (2000, 20, 4, 1.0), (500, 100, 2, 1.0), (200, 300, 2, 1.0),
         (3000, 10, 2, 0.3), (1000, 30, 3, 2.0))  # fmt: skip


def data_sets(quick: bool) -> Iterator[tuple[str, Array, Array]]:
    """Yield names, features and labels."""
    for load in (load_iris, load_wine, load_breast_cancer):
        yield (load.__name__.removeprefix("load_"), *load(return_X_y=True))
        if quick:
            return
    X, y = load_digits(return_X_y=True)
    few = y < 3
    yield "digits 0 to 2", X[few], y[few]
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes, two classes", X, (y > 140).astype(int)
    yield "diabetes, three classes", X, np.digitize(y, [90, 180])
    for rows, columns, classes, distance in _MADE:
        informative = min(columns - 2, 10)
        X, y = make_classification(
            rows, columns, n_informative=informative, n_classes=classes, class_sep=distance,
            n_clusters_per_class=1, random_state=1,
        )  # fmt: skip
        yield f"{rows} x {columns}, {classes} classes, {distance:g} apart", X, y
    yield from _awkward(np.random.default_rng(0))


def _awkward(rng: np.random.Generator) -> Iterator[tuple[str, Array, Array]]:
    X = rng.normal(size=(800, 12))
    X = np.c_[X, X[:, :4] + 1e-3 * rng.normal(size=(800, 4))]
    yield "collinear", X, (X[:, 0] + X[:, 5] + rng.normal(size=800) > 0).astype(int)
    X = rng.normal(size=(3000, 8))
    yield "imbalanced", X, (X[:, 0] + 2 * rng.normal(size=3000) > 4.5).astype(int)
    X = rng.standard_t(2, size=(1000, 10))
    yield "heavy tails", X, (X[:, 0] + rng.normal(size=1000) > 0).astype(int)
    X = rng.normal(size=(400, 6))
    yield "separable", X, (X[:, 0] > 0).astype(int)
    X = (rng.random((1000, 50)) < 0.05).astype(float)
    yield "mostly zeros", X, (X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=1000) > 0.3).astype(int)
    X = np.exp(1.5 * rng.normal(size=(1000, 8)))
    yield "log-normal", X, (np.log(X[:, 0]) + rng.normal(size=1000) > 0).astype(int)


def scales(X: Array) -> Iterator[tuple[str, Array]]:
    """Yield the same features on different scales."""
    Z = StandardScaler().fit_transform(X)
    large, huge = Z.copy(), Z.copy()
    large[:, 0] *= 1e3
    huge[:, 0] *= 1e6
    powers = np.random.default_rng(0).uniform(-1, 1, X.shape[1])
    yield "as it is", X
    yield "standardised", Z
    yield "columns of 0.1 to 10", Z * 10.0**powers
    yield "columns of 0.01 to 100", Z * 100.0**powers
    yield "a column of 1e3", large
    yield "a column of 1e6", huge
    yield "around 30", Z + 30.0
    yield "small", Z * 1e-2
    yield "columns of 200", Z * 200.0
    yield "float32", Z.astype(np.float32)


def regression_targets(X: Array) -> tuple[Array, Array, Array]:
    """Return real numbers, counts and positive numbers that depend on the first features."""
    rng = np.random.default_rng(1)
    Z = np.asarray(X, dtype=np.float64)
    spread = Z.std(axis=0)
    Z = (Z - Z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    signal = np.clip(0.4 * Z[:, :3].sum(axis=1), -3, 3)
    n = len(signal)
    counts = rng.poisson(np.exp(signal)).astype(float)
    return signal + 0.3 * rng.normal(size=n), counts, np.exp(signal) * rng.gamma(2.0, 0.5, n) + 1e-6
