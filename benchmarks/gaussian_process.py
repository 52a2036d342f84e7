"""GaussianProcessRegressor(optimizer=None), which is not shared: what a shared kernel matrix could gain."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from sklearn.datasets import make_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell

ALPHAS = np.logspace(-3, 1, 5)

_COLUMNS = (
    Column("size", "rows x columns"),
    Column("fits", "fits of all alphas, CPU", "s"),
    Column("scores", "their scores, CPU", "s"),
    Column("kernel", "kernel matrix, once, CPU", "s"),
    Column("cross", "kernel with the test rows, once, CPU", "s"),
    Column("cholesky", "Cholesky factorisation, once, CPU", "s"),
    Column("kernel_gain", "most by sharing kernels", "number"),
    Column("all_gain", "most without the likelihood, too", "number"),
)


def _least_seconds(call: Callable[[], Any], n: int) -> float:
    """CPU seconds of a call, the least of `n`."""
    seconds = []
    for _ in range(n):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _row(n: int, p: int, repeat: int) -> dict[str, Any]:
    X, y = make_regression(n + n // 4, p, noise=10.0, random_state=0)
    y = (y - y.mean()) / y.std()
    train, test, kernel = slice(0, n), slice(n, None), RBF(length_scale=np.sqrt(p))
    models = [GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None) for alpha in ALPHAS]
    fits = sum(_least_seconds(lambda m=m: m.fit(X[train], y[train]), repeat) for m in models)
    scores = sum(_least_seconds(lambda m=m: m.score(X[test], y[test]), repeat) for m in models)
    one = _least_seconds(lambda: kernel(X[train]), repeat)
    cross = _least_seconds(lambda: kernel(X[test], X[train]), repeat)
    K = kernel(X[train]) + ALPHAS[0] * np.eye(n)
    factor = _least_seconds(lambda: cholesky(K, lower=True, check_finite=False), repeat)
    # A fit makes the kernel matrix and its factor twice: for the likelihood, and to predict.
    k, total = len(ALPHAS), fits + scores
    kernels_once = total - (2 * k - 1) * one - (k - 1) * cross
    no_likelihood = one + cross + k * factor + scores - k * cross
    return {
        "size": f"{n:,} x {p}", "fits": fits, "scores": scores, "kernel": one, "cross": cross,
        "cholesky": factor, "kernel_gain": total / kernels_once, "all_gain": total / no_likelihood,
    }  # fmt: skip


def _measure(quick: bool, tell: Tell) -> Findings:
    rows = []
    for n, p in [(200, 5)] if quick else [(500, 10), (1_500, 20), (3_000, 50)]:
        tell(f"{n:,} x {p}")
        rows.append(_row(n, p, repeat=1 if quick else 2))
    note = (
        f"{len(ALPHAS)} alphas on one fold of a RBF kernel, a fifth of the rows for the scores. A fit of"
        " scikit-learn evaluates the likelihood, which no score reads. Without it, and with both kernel"
        " matrices once, a factorisation for each alpha and the predictions remain."
    )
    return Findings(rows, _COLUMNS, notes=(note,))


register(
    Study("gp-kernel", "GaussianProcessRegressor: what a kernel matrix for all alphas could gain", _measure)
)
