"""A second route in extended precision: least squares behind affine steps, by SVD.

Used only to judge who is nearer to the truth where an ill conditioned problem makes two correct programs
differ. One-sided Jacobi on `numpy.longdouble` (64 bits of significand) is some two thousand times more
accurate than any float64 program, and is accurate in the small singular values too.

References
----------
J. Demmel and K. Veselic, "Jacobi's method is more accurate than QR", SIAM J. Matrix Anal. Appl. 13 (1992).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

Real = np.longdouble
EPS = np.finfo(Real).eps
EPS64 = np.finfo(np.float64).eps
# On platforms whose longdouble is a double there is no more precise route.
AVAILABLE = EPS < EPS64 / 1000

Transform = Callable[[np.ndarray], np.ndarray]


class Unknown(Exception):
    """The oracle does not know this estimator, or not with these parameters."""


def predict(
    estimator: Any,
    X: np.ndarray,
    y: np.ndarray,
    X_new: np.ndarray,
    weights: Mapping[str, np.ndarray] | None = None,
) -> np.ndarray:
    """Predictions for `X_new` of `estimator` fitted on `X`, `y`, all steps in extended precision.

    Parameters
    ----------
    estimator : estimator
        A regressor or a pipeline, at any depth, that ends in one; not fitted.
    X, y, X_new : ndarray
        The rows to fit on and to predict; the dtype of `X` rules the estimators' own cutoffs.
    weights : mapping from the step's path to ndarray, optional
        `sample_weight` of each step that is given one; the path of a bare estimator is "".

    Raises
    ------
    Unknown
        If a step or one of its parameters is not served here.
    """
    weights = weights or {}
    Z, Z_new, target = X.astype(Real), X_new.astype(Real), y.astype(X.dtype).astype(Real)
    return _predict(estimator, Z, target, Z_new, weights, X.dtype)


def _predict(
    estimator: Any,
    Z: np.ndarray,
    target: np.ndarray,
    Z_new: np.ndarray,
    weights: Mapping[str, np.ndarray],
    dtype: np.dtype,
    prefix: str = "",
) -> np.ndarray:
    *steps, (path, final) = _steps(estimator, prefix)
    for name, step in steps:
        transform = _lookup(STEPS, step)(step, Z, target, _real(weights.get(name)))
        Z, Z_new = transform(Z), transform(Z_new)
    if type(final) is TransformedTargetRegressor:
        there, back = _target_maps(final, target)
        inner = LinearRegression() if final.regressor is None else final.regressor
        return back(_predict(inner, Z, there(target), Z_new, weights, dtype, path))
    if type(final) is MultiOutputRegressor:
        columns = [_predict(final.estimator, Z, y, Z_new, weights, dtype, path) for y in target.T]
        return np.stack(columns, axis=1)
    coef, intercept = _linear_model(final, Z, target, _real(weights.get(path)), dtype)
    return Z_new @ coef + intercept


def _target_maps(model: TransformedTargetRegressor, y: np.ndarray) -> tuple[Transform, Transform]:
    """The map of the targets, and back."""
    if model.func is not None:
        return model.func, model.inverse_func
    if model.transformer is None:
        return lambda z: z, lambda z: z
    if type(model.transformer) is StandardScaler:
        scaled = _scaler(model.transformer, y, y, None)
        at_zero = scaled(np.zeros_like(y[:1]))
        return scaled, lambda z: (z - at_zero) / (scaled(np.ones_like(y[:1])) - at_zero)
    raise Unknown(type(model.transformer).__name__)


def _real(weights: Any) -> np.ndarray | None:
    return None if weights is None else np.asarray(weights).astype(Real)


def _steps(estimator: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The steps of nested pipelines in order, each with its path; those that do nothing are left out."""
    if type(estimator) is not Pipeline:
        yield prefix, estimator
        return
    for name, step in estimator.steps:
        if step not in (None, "passthrough"):
            yield from _steps(step, f"{prefix}__{name}" if prefix else name)


def _lookup(table: Mapping[type, Any], step: Any) -> Any:
    try:
        return table[type(step)]
    except KeyError:
        raise Unknown(type(step).__name__) from None


def svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thin SVD by one-sided Jacobi; `U` has zero columns where the singular value is zero."""
    if A.shape[0] < A.shape[1]:
        U, s, Vt = svd(A.T)
        return Vt.T, s, U.T
    U, V = A.astype(Real).copy(), np.eye(A.shape[1], dtype=Real)
    largest = np.sqrt((U**2).sum(axis=0).max(initial=0))
    for _ in range(60):
        if not _sweep(U, V, EPS * largest):
            break
    s = np.sqrt((U**2).sum(axis=0))
    order = np.argsort(-s)
    U, s, V = U[:, order], s[order], V[:, order]
    return U / np.where(s > 0, s, 1), s, V.T


def _sweep(U: np.ndarray, V: np.ndarray, negligible: np.floating) -> bool:
    """Make each pair of columns of `U` orthogonal once; False when all were."""
    turned = False
    for i in range(U.shape[1]):
        for j in range(i + 1, U.shape[1]):
            a, b, c = U[:, i] @ U[:, i], U[:, j] @ U[:, j], U[:, i] @ U[:, j]
            if abs(c) <= 4 * EPS * np.sqrt(a * b) or min(a, b) <= negligible**2:
                continue
            turned = True
            zeta = (b - a) / (2 * c)
            t = np.copysign(Real(1), zeta) / (abs(zeta) + np.sqrt(1 + zeta * zeta))
            cos = 1 / np.sqrt(1 + t * t)
            for M in (U, V):
                M[:, i], M[:, j] = cos * M[:, i] - cos * t * M[:, j], cos * t * M[:, i] + cos * M[:, j]
    return turned


def _mean(A: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    return A.mean(axis=0) if w is None else (A * _column(w, A)).sum(axis=0) / w.sum()


def _column(w: np.ndarray, A: np.ndarray) -> np.ndarray:
    return w if A.ndim == 1 else w[:, None]


# -------------------------------------------------------------------------------------------- the steps


def _scaler(step: StandardScaler, X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> Transform:
    mean = _mean(X, w)
    var = _mean((X - mean) ** 2, w)
    count = len(X) if w is None else w.sum()
    # scikit-learn's own rule for a column that it cannot tell from a constant one.
    constant = var <= count * EPS64 * var + (count * mean * EPS64) ** 2
    scale = np.where(constant, 1, np.sqrt(var)) if step.with_std else np.ones_like(mean)
    shift = mean if step.with_mean else np.zeros_like(mean)
    return lambda Z: (Z - shift) / scale


def _pca(step: PCA, X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> Transform:
    if step.svd_solver not in ("auto", "full", "covariance_eigh"):
        raise Unknown(f"PCA(svd_solver={step.svd_solver!r})")
    mean = X.mean(axis=0)
    _, s, Vt = svd(X - mean)
    variance = s**2 / (len(X) - 1)
    V = Vt[: _n_components(step.n_components, variance)].T
    scale = np.sqrt(variance[: V.shape[1]]) if step.whiten else np.ones(V.shape[1], dtype=Real)
    scale = np.maximum(scale, np.finfo(np.float64).eps)
    return lambda Z: (Z - mean) @ V / scale


def _n_components(asked: Any, variance: np.ndarray) -> int:
    if asked is None:
        return len(variance)
    if isinstance(asked, str):
        raise Unknown(f"PCA(n_components={asked!r})")
    if isinstance(asked, float):
        return int(np.searchsorted(np.cumsum(variance / variance.sum()), asked, side="right")) + 1
    return int(asked)


def _variance_threshold(
    step: VarianceThreshold, X: np.ndarray, y: np.ndarray, w: np.ndarray | None
) -> Transform:
    spread = X.var(axis=0)
    if step.threshold == 0:
        spread = np.minimum(spread, np.ptp(X, axis=0))
    keep = spread > step.threshold
    return lambda Z: Z[:, keep]


def _select_k_best(step: SelectKBest, X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> Transform:
    if step.score_func is not f_regression:
        raise Unknown("SelectKBest with another score_func")
    if step.k == "all" or step.k >= X.shape[1]:
        return lambda Z: Z
    centred = X - X.mean(axis=0)
    norm = np.sqrt((centred**2).sum(axis=0))
    correlation = centred.T @ (y.ravel() - y.mean()) / np.where(norm > 0, norm, 1)
    keep = np.sort(np.argsort(correlation**2, kind="stable")[len(norm) - step.k :])
    return lambda Z: Z[:, keep]


STEPS: dict[type, Callable[[Any, np.ndarray, np.ndarray, np.ndarray | None], Transform]] = {
    StandardScaler: _scaler,
    PCA: _pca,
    VarianceThreshold: _variance_threshold,
    SelectKBest: _select_k_best,
}

# ------------------------------------------------------------------------------------- the last step

# scikit-learn 1.9 cuts the rank of LinearRegression at `tol`, older ones at rounding level. A probe, since
# the change is of behaviour and not of signature.
_NEARLY_FLAT = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1e-8], [0.0, -1e-8]]
_CUTS_AT_TOL = LinearRegression().fit(_NEARLY_FLAT, [1.0, 2.0, 3.0, 4.0]).rank_ == 1


def _linear_model(
    model: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients, shaped to multiply from the right, and intercept."""
    if type(model) is PLSRegression:
        return _partial_least_squares(model, X, y)
    if type(model) not in (Ridge, LinearRegression) or model.positive:
        raise Unknown(type(model).__name__)
    X_mean, y_mean = (_mean(X, w), _mean(y, w)) if model.fit_intercept else (X[0] * 0, y[0] * 0)
    root = np.ones(len(X), dtype=Real) if w is None else np.sqrt(w)
    U, s, Vt = svd((X - X_mean) * root[:, None])
    target = (y - y_mean) * _column(root, y)
    coef = _filtered(model, U, s, Vt, target, dtype)
    return coef, y_mean - X_mean @ coef


def _partial_least_squares(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """NIPALS as scikit-learn's, with directions by rows of the deflated X."""
    Y = y if y.ndim == 2 else y[:, None]
    A, B, x_mean, y_mean = X - X.mean(axis=0), Y - Y.mean(axis=0), X.mean(axis=0), Y.mean(axis=0)
    scales = [np.sqrt((Z**2).sum(axis=0) / (len(Z) - 1)) if model.scale else Z[0] * 0 + 1 for Z in (A, B)]
    x_scale, y_scale = (np.where(scale > 0, scale, 1) for scale in scales)
    A, B = A / x_scale, B / y_scale
    W, P, Q = (np.zeros((Z.shape[1], model.n_components), dtype=Real) for Z in (A, A, B))
    for k in range(model.n_components):
        score, before = B[:, 0], None
        for _ in range(model.max_iter):
            w = A.T @ score
            w = w / np.sqrt(w @ w)
            t = A @ w
            q = B.T @ t / (t @ t)
            if len(q) == 1 or (before is not None and ((w - before) ** 2).sum() < model.tol):
                break
            score, before = B @ q, w
        W[:, k], P[:, k], Q[:, k] = w, A.T @ t / (t @ t), q
        A, B = A - np.outer(t, P[:, k]), B - np.outer(t, q)
    R = np.zeros_like(W)
    for k in range(model.n_components):
        R[:, k] = W[:, k] - R[:, :k] @ (P[:, :k].T @ W[:, k])
    coef = (R @ Q.T) * y_scale / x_scale[:, None]
    intercept = y_mean - x_mean @ coef
    return (coef, intercept) if y.ndim == 2 else (coef[:, 0], intercept[0])


def _filtered(
    model: Any, U: np.ndarray, s: np.ndarray, Vt: np.ndarray, target: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    rounding = max(len(U), Vt.shape[1]) * np.finfo(dtype).eps
    if type(model) is LinearRegression:
        cut = model.tol if _CUTS_AT_TOL else rounding
        alpha = np.zeros(1, dtype=Real)
    else:
        if model.solver not in ("auto", "svd", "cholesky"):
            raise Unknown(f"Ridge(solver={model.solver!r})")
        cut, alpha = rounding, np.ravel(model.alpha).astype(dtype).astype(Real)
    nonzero = s > (cut * s[0] if len(s) else 0)
    rotated = (U.T @ target).reshape(len(s), -1)
    gain = s[:, None] / np.where(s[:, None] > 0, s[:, None] ** 2 + alpha, 1)
    # A penalty makes every direction finite; without one the directions that are only rounding are left out.
    gain = np.where(nonzero[:, None] | (alpha > 0), gain, 0)
    coef = Vt.T @ (gain * rotated)
    return coef if target.ndim == 2 else coef[:, 0]
