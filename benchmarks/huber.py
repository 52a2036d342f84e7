"""HuberRegressor, which is not shared: where scikit-learn stops, and what an optimum would take."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_regression
from sklearn.linear_model import HuberRegressor
from sklearn.model_selection import KFold

from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell

Array = NDArray[Any]

_COLUMNS = (
    Column("size", "rows x columns"),
    Column("sklearn", "scikit-learn, CPU", "s"),
    Column("newton", "Newton's method, CPU", "s"),
    Column("iterations", "iterations of scikit-learn"),
    Column("gradient", "its largest gradient", "gap"),
    Column("difference", "largest difference of R2", "gap"),
)


def _objective(X: Array, y: Array, at: Array, alpha: float, epsilon: float) -> tuple[float, Array, Array]:
    """Value, gradient and residuals at coefficients, intercept and scale."""
    w, scale = at[:-2], at[-1]
    r = y - X @ w - at[-2]
    out = np.abs(r) > epsilon * scale
    far, near = np.abs(r[out]), r[~out]
    tails = 2.0 * epsilon * far.sum() - scale * out.sum() * epsilon**2
    value = len(y) * scale + tails + near @ near / scale + alpha * w @ w
    slope = np.where(out, -2.0 * epsilon * np.sign(r), -2.0 * r / scale)
    by_scale = len(y) - out.sum() * epsilon**2 - near @ near / scale**2
    return float(value), np.r_[X.T @ slope + 2.0 * alpha * w, slope.sum(), by_scale], np.where(out, np.nan, r)


def _newton(X: Array, y: Array, at: Array, alpha: float, epsilon: float, tol: float) -> Array:
    for _ in range(60):
        value, gradient, r = _objective(X, y, at, alpha, epsilon)
        if np.abs(gradient).max() <= tol:
            break
        near, scale = ~np.isnan(r), at[-1]
        J = np.column_stack([X[near], np.ones(near.sum()), r[near] / scale])
        H = 2.0 / scale * (J.T @ J)
        H[np.arange(len(at) - 2), np.arange(len(at) - 2)] += 2.0 * alpha
        step, length = -np.linalg.solve(H + 1e-12 * np.trace(H) / len(H) * np.eye(len(H)), gradient), 1.0
        while length > 1e-8:
            new = at + length * step
            if new[-1] > 0 and _objective(X, y, new, alpha, epsilon)[0] <= value + 1e-4 * length * (
                gradient @ step
            ):
                at = new
                break
            length /= 2.0
        else:
            break
    return at


def _row(n: int, p: int) -> dict[str, Any]:
    X, y = make_regression(n, p, noise=30.0, n_informative=min(p, 10), random_state=0)
    y, alphas, tol = y / 50.0, np.logspace(-4, 3, 8), HuberRegressor().tol
    scores, others, iterations, gradients = [], [], [], []
    times = [0.0, 0.0]
    for train, test in KFold(5).split(X):
        start = time.process_time()
        fits = [HuberRegressor(alpha=alpha).fit(X[train], y[train]) for alpha in alphas]
        times[0] += time.process_time() - start
        scores += [fit.score(X[test], y[test]) for fit in fits]
        for fit in fits:
            at = np.r_[fit.coef_, fit.intercept_, fit.scale_]
            iterations.append(fit.n_iter_)
            gradients.append(np.abs(_objective(X[train], y[train], at, fit.alpha, 1.35)[1]).max())
        start, A, b = time.process_time(), X[train], y[train]
        at, found = np.r_[np.zeros(p), np.median(b), np.median(np.abs(b - np.median(b)))], []
        for alpha in alphas[::-1]:
            at = _newton(A, b, at, alpha, 1.35, tol)
            found.append(at)
        times[1] += time.process_time() - start
        total = ((y[test] - y[test].mean()) ** 2).sum()
        others += [1.0 - ((y[test] - X[test] @ w[:-2] - w[-2]) ** 2).sum() / total for w in found[::-1]]
    return {
        "size": f"{n:,} x {p}",
        "sklearn": times[0],
        "newton": times[1],
        "iterations": f"{min(iterations)} to {max(iterations)}",
        "gradient": float(max(gradients)),
        "difference": float(np.abs(np.subtract(scores, others)).max()),
    }


def _measure(quick: bool, tell: Tell) -> Findings:
    rows = []
    for n, p in [(300, 5)] if quick else [(3_000, 20), (20_000, 30), (20_000, 100)]:
        tell(f"{n:,} x {p}")
        rows.append(_row(n, p))
    notes = (f"8 alphas x 5 folds, from the largest; tol is {HuberRegressor().tol:g}.",)
    return Findings(rows, _COLUMNS, notes=notes)


register(Study("huber-path", "HuberRegressor beside Newton's method along alpha, down to its tol", _measure))
