"""LogisticRegression with the l1 penalty of liblinear: Newton's method along C, on each split by itself.

The certificate is liblinear's own: the sum of what the subgradient of each coefficient is off zero.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from manyfit.families.protocol import Array, Cost, Settings, Shape, recorded_warnings
from manyfit.families.smooth._quadratic import minimise_with_l1
from manyfit.families.smooth.solver._solution import PathSolution
from manyfit.folds import PassData, Unsupported
from manyfit.metrics.scoring import LinearPredictors

# A result is followed until it violates the conditions of an optimum by this share of what `tol` allows.
TOL_SHARE = 1e-2
STEPS, SHORTENINGS, DESCENT = 60, 30, 1e-4
# On other splits liblinear may take so many times the iterations that it takes on the first. With 1.5 it
# ended at `max_iter` in 5 of some 4,000 fits that were shared, with 2.5 and with 4 in none: see `python -m
# benchmarks l1-iterations`. Most fits take a dozen iterations of 100, so that the larger margin costs little.
MARGIN = 4.0
# scikit-learn's own fits may be off by this much for a certificate of another formula.
ROUNDING = 1.02
# liblinear makes no smaller step in a coefficient.
SMALLEST_STEP = 1e-12
# A curvature of less than this share of the largest is rounding: nothing that is scored depends on it.
FLAT = 1e-10
# Nanoseconds for each number of a training set: of a fit by liblinear, and of one here, with its products.
OF_LIBLINEAR, OF_PATH, PER_COLUMN, OF_FIT = 350.0, 15.0, 0.1, 2e6


def l1_cost(n_settings: int, shape: Shape) -> Cost:
    """Nanoseconds of fits by Newton's method, the fits of scikit-learn on one split included."""
    if shape.n_entries is not None or shape.row_entries is not None:
        raise Unsupported("an l1 penalty is shared on dense rows")
    n, p, k = shape.n_train, shape.n_features, shape.n_splits
    alone = n_settings * n * p * OF_LIBLINEAR
    path = n_settings * (OF_FIT + n * p * (OF_PATH + PER_COLUMN * p))
    return Cost(alone + k * path, k * alone)


@dataclass(frozen=True)
class TrainingRows:
    """Training rows of a split: `A`, (n, d), with a column of ones for the intercept; labels are 0 and 1."""

    A: Array
    labels: Array
    weight: Array  # of classes and samples
    share: float  # of the rarer class

    def violation(self, w: Array, C: float) -> tuple[float, Array, Array]:
        """Sum of the violations of the conditions of an optimum; slopes of the loss, and probabilities."""
        P = expit(self.A @ w)
        slope = C * (self.A.T @ (self.weight * (P - self.labels)))
        off = np.where(w == 0.0, np.maximum(np.abs(slope) - 1.0, 0.0), np.abs(slope + np.sign(w)))
        return float(off.sum()), slope, P

    def value(self, w: Array, C: float) -> float:
        """The objective."""
        z = self.A @ w
        loss = np.logaddexp(0.0, np.where(self.labels > 0, -z, z))
        return float(C * (self.weight @ loss) + np.abs(w).sum())

    def hessian(self, P: Array, C: float) -> Array:
        """Second derivatives of the loss, (d, d)."""
        return np.asarray(C * ((self.A * (self.weight * P * (1.0 - P))[:, None]).T @ self.A))

    def minimum(self, w: Array, C: float, goal: float) -> tuple[Array, float]:
        """The optimum from a start, and the violation that is left."""
        left, slope, P = self.violation(w, C)
        for _ in range(STEPS):
            if left <= goal:
                break
            H = self.hessian(P, C)
            step = minimise_with_l1(H, H @ w - slope, w) - w
            gain = float(slope @ step + np.abs(w + step).sum() - np.abs(w).sum())
            before, length = self.value(w, C), 1.0
            for _ in range(SHORTENINGS):
                if self.value(w + length * step, C) <= before + DESCENT * length * gain:
                    break
                length /= 2.0
            else:
                break
            w = w + length * step
            left, slope, P = self.violation(w, C)
        return w, left

    def error(self, w: Array, C: float, allowed: float) -> Array:
        """About how far a fit may be off that violates the conditions by what is allowed.

        What is left may lie in any coefficient, so each gets all of it.
        """
        _, slope, P = self.violation(w, C)
        out, free = np.zeros_like(w), np.flatnonzero((w != 0.0) | (np.abs(slope) >= 1.0 - allowed))
        if free.size:
            H = self.hessian(P, C)[np.ix_(free, free)]
            size = np.sqrt(np.maximum(np.diagonal(H), np.finfo(np.float64).tiny))  # columns of one size
            values, vectors = np.linalg.eigh(H / np.outer(size, size))
            signs = np.random.default_rng(0).choice([-1.0, 1.0], free.size)
            kept = values > FLAT * values[-1]
            along = (vectors[:, kept].T @ (signs / size)) / values[kept]
            out[free] = allowed * (vectors[:, kept] @ along) / size
        return out


def fit_l1_path(
    estimator: Any, settings: Settings, data: PassData, codes: Array, class_weight: Array | None
) -> Iterator[PathSolution]:
    """A solution for each split. scikit-learn fits all settings on the first, unless optima are asked for."""
    C = np.array([float(setting["C"]) for setting in settings])
    trusted = np.ones(len(C), dtype=bool)
    for group in data.groups:
        for i, counts in zip(group.splits, group.train, strict=True):
            if not np.isin(counts, (0.0, 1.0)).all():
                raise Unsupported("training rows are repeated")
            taken = np.zeros(data.X.shape[0], dtype=bool)
            for rows, count in zip(group.rows, counts, strict=True):
                taken[rows] = count > 0
            X, y = _rows(data, i, np.flatnonzero(taken)), codes[taken]
            own = None if data.weight is None else data.weight[taken]
            if i == 0 and data.sklearn_stops:
                W, trusted = _trial(estimator, C, X, y, own, class_weight)
                yield _solution(data, i, W, np.zeros_like(W), np.ones_like(trusted), trusted, estimator)
                continue
            training = _training(X, y, own, None if class_weight is None else class_weight[i], estimator)
            yield _solution(data, i, *_path(training, C, trusted, estimator.tol), trusted, estimator)


def _path(training: TrainingRows, C: Array, kept: Array, tol: float) -> tuple[Array, Array, Array]:
    """Coefficients (m, d), how far they may be off, and whether they are optima; from the smallest C on."""
    d = training.A.shape[1]
    W, error, converged, w = np.zeros((len(C), d)), np.zeros((len(C), d)), np.zeros(len(C), bool), np.zeros(d)
    for j in np.argsort(C):
        if kept[j]:
            allowed = tol * training.share * training.violation(np.zeros(d), C[j])[0]
            w, left = training.minimum(w, C[j], TOL_SHARE * allowed)
            W[j], converged[j], error[j] = w, left <= allowed, training.error(w, C[j], allowed)
    return W, error, converged


def _trial(
    estimator: Any, C: Array, X: Array, y: Array, own: Array | None, class_weight: Array | None
) -> tuple[Array, Array]:
    """scikit-learn's own coefficients (m, d) on a split, and whether it would meet `tol` on all."""
    training = _training(X, y, own, None if class_weight is None else class_weight[0], estimator)
    W, trusted = np.zeros((len(C), training.A.shape[1])), np.zeros(len(C), dtype=bool)
    if class_weight is not None and isinstance(estimator.class_weight, Mapping):
        # Its keys are labels, and y has codes.
        estimator = clone(estimator).set_params(class_weight=dict(enumerate(class_weight[0].tolist())))
    for j, strength in enumerate(C):
        with recorded_warnings() as found:
            fitted = clone(estimator).set_params(C=strength).fit(X, y, sample_weight=own)
        W[j, : X.shape[1]] = fitted.coef_[0]
        W[j, X.shape[1] :] = np.ravel(fitted.intercept_)[: training.A.shape[1] - X.shape[1]]
        allowed = estimator.tol * training.share * training.violation(np.zeros(W.shape[1]), strength)[0]
        met = training.violation(W[j], strength)[0] <= ROUNDING * allowed
        trusted[j] = not found and met and MARGIN * np.max(fitted.n_iter_) < estimator.max_iter
    return W, trusted


def _rows(data: PassData, i: int, taken: Array) -> Array:
    """Training rows of a split behind its steps, on the host."""
    view, X = data.views[i], data.X.take(taken)
    if type(X) is not np.ndarray:
        raise Unsupported("an l1 penalty is shared on dense rows of the host")
    if 4 * 8 * X.size > data.memory_limit:
        raise Unsupported("the training rows of a split, which an l1 penalty needs, exceed memory_limit")
    X = X.astype(np.float64)
    if view is None:
        return X
    return np.asarray((X - view.origin) @ view.to_X(np.eye(view.n_features)) + view.plain.x_origin)


def _training(X: Array, y: Array, own: Array | None, of_class: Array | None, estimator: Any) -> TrainingRows:
    weight = np.ones(len(y)) if own is None else own
    counts = np.bincount(y[weight > 0], minlength=2)
    if not ((weight >= 0).all() and counts.all()):
        raise Unsupported("a weight is negative or NaN, or a class has no weight in a training part")
    share = counts.min() / counts.sum()
    if SMALLEST_STEP * np.abs(X).max(initial=0.0) > estimator.tol * share:
        raise Unsupported("X has numbers so large that liblinear's smallest step exceeds tol")
    A = np.column_stack([X, np.ones(len(y))]) if estimator.fit_intercept else X
    weight = weight if of_class is None else weight * of_class[y]
    return TrainingRows(np.asfortranarray(A), y, weight, share)


def _solution(
    data: PassData, i: int, W: Array, error: Array, converged: Array, trusted: Array, estimator: Any
) -> PathSolution:
    fits = len(W) if i == 0 and data.sklearn_stops else 0
    linear, off = (_linear(data.views[i], one, estimator.fit_intercept) for one in (W, error))
    return PathSolution(linear, off, converged, trusted, data.X.shape[0], fits)


def _linear(view: Any, W: Array, fit_intercept: bool) -> LinearPredictors:
    """Predictors on the columns of X."""
    coef, at_origin = (W[:, :-1], W[:, -1]) if fit_intercept else (W, np.zeros(len(W)))
    if view is None:
        return LinearPredictors(coef.T[:, :, None], at_origin[:, None], np.zeros(coef.shape[1]))
    at_origin = at_origin + coef @ view.plain.x_origin
    return LinearPredictors(view.to_X(coef.T)[:, :, None], at_origin[:, None], view.origin)
