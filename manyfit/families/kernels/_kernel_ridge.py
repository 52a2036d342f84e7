"""KernelRidge: one band form of the kernel matrix answers all penalties."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.extmath import row_norms

from manyfit.families.kernels._band_form import BandForm
from manyfit.families.protocol import (
    Array,
    Cost,
    FoldFamily,
    ModelAnswers,
    Responses,
    Settings,
    Shape,
    refused_warnings,
    register_family,
    require_number,
)
from manyfit.folds import Fold, Unsupported

# The loss of digits, relative to the targets, up to which dual coefficients are scikit-learn's to rounding.
MOST_LOSS = 1e-10
# Numbers of a block of a kernel matrix, for predictions: 32 MB.
BLOCK = 2**22
# A band form takes as long as this many Cholesky factors, of a quarter of its operations.
FACTORS = 4.0


class KernelRidgeFamily(FoldFamily):
    """KernelRidge with one penalty for all targets, for kernels that scikit-learn has by name.

    The kernel matrix is ``K = Q B Q'`` with a band matrix B, so that ``(K + alpha I)^-1 y`` costs a solution
    with ``B + alpha I`` and a product with Q. In memory are one and a half kernel matrices of the training
    rows, for two in a fit of scikit-learn's, and a block of the one of the rows to predict.

    Reference: sklearn.linear_model._ridge._solve_cholesky_kernel (1.9).
    """

    serves = (KernelRidge,)
    free = frozenset({"alpha"})

    def check(self, estimator: Any, settings: Settings) -> None:
        if not isinstance(estimator.kernel, str):
            raise Unsupported("kernel is a function")
        if estimator.kernel == "precomputed":
            raise Unsupported("kernel='precomputed' is not shared")
        for setting in settings:
            require_number("alpha", setting["alpha"])

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        n, q, m, k = float(shape.n_train), max(shape.n_targets, 1), len(settings), shape.n_splits
        kernel = n * (n + shape.n_test) * (2.0 * shape.n_features + 40.0)  # the exponential function
        factor, solve = n**3 / 3.0, 2.0 * n**2 * q
        shared = kernel + FACTORS * factor + 3.0 * m * solve
        return Cost(k * shared, k * m * (kernel + factor + 2.0 * solve))

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> ModelAnswers:
        alphas = np.array([float(setting["alpha"]) for setting in settings])
        kernel, y = Kernel(estimator, fold.X_train), fold.y_train
        dual, refused = _dual_coefficients(kernel, y, fold.fit_weight, alphas)
        predictions = partial(_responses, kernel, y.ndim == 1)
        return ModelAnswers([*dual], predictions, refused, n_targets=dual.shape[2])


class Kernel:
    """The kernel function of an estimator, between rows and the training rows X, (n_train, p); float64.

    Raises `Unsupported` if they have another precision, or values that are not finite.
    """

    def __init__(self, estimator: Any, X: Any) -> None:
        names = ("gamma", "degree", "coef0")
        self.name, self.params = estimator.kernel, {name: getattr(estimator, name) for name in names}
        self.X = _readable(X)
        if self.name == "rbf":
            _require_near_distances(self.X, estimator.gamma)

    def __call__(self, X: Any = None) -> Array:
        """The kernel matrix (n, n_train) of rows X, or of the training rows; refused with a warning."""
        with refused_warnings("the kernel"):
            rows, others = (self.X, None) if X is None else (X, self.X)
            K = pairwise_kernels(rows, others, metric=self.name, filter_params=True, **self.params)
        if not isinstance(K, np.ndarray) or K.dtype != np.float64:
            raise Unsupported("the kernel matrix is not of float64")
        return K

    def products(self, X: Any, dual: Array) -> Array:
        """Kernel matrix of rows X times `dual`, (n_train, d), block by block."""
        X, n = _readable(X), X.shape[0]
        size = max(1, BLOCK // len(dual))
        found = np.empty((n, dual.shape[1]))
        for start in range(0, n, size):
            found[start : start + size] = self(X[start : start + size]) @ dual
        return found


def _responses(kernel: Kernel, flat: bool, X: Any, dual: Sequence[Array]) -> Responses:
    """Responses by dual coefficients of each setting, (n_train, q); `flat`: y has one dimension."""

    def predict() -> Array:
        m, (n, q) = len(dual), dual[0].shape
        found = kernel.products(X, np.stack(dual, axis=1).reshape(n, m * q))
        predicted = np.ascontiguousarray(found.reshape(-1, m, q).transpose(1, 0, 2))
        return predicted[:, :, 0] if flat else predicted

    return Responses(predict=predict)


def _require_near_distances(X: Any, gamma: float | None) -> None:
    """Refuse rows so far from zero that their distances, differences of squares, are rounding.

    scikit-learn's are others between rows of one matrix than between equal rows of two.
    """
    farthest = float(row_norms(X.astype(np.float64, copy=False), squared=True).max(initial=0.0))
    if np.finfo(np.float64).eps * farthest * (1.0 / X.shape[1] if gamma is None else gamma) > MOST_LOSS:
        raise Unsupported("rows are so far from zero that their distances are rounding")


def _readable(X: Any) -> Any:
    """Rows as float64 or integers; others are refused."""
    if X.dtype == np.float32:
        raise Unsupported("scikit-learn computes with a kernel matrix of float32")
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not np.isfinite(X).all():
        raise Unsupported("X holds NaN or infinity")
    return X


def _dual_coefficients(
    kernel: Kernel, y: Array, weights: Array | None, alphas: Array
) -> tuple[Array, dict[int, str]]:
    """Dual coefficients (n_settings, n_train, q), and settings whose equations are too ill-conditioned."""
    n, Y = len(y), y.reshape(len(y), -1).astype(np.float64)
    if n < 3 or not np.isfinite(Y).all():
        raise Unsupported("the training rows are few, or y holds NaN or infinity")
    K = kernel()
    if weights is not None:
        roots = np.sqrt(weights)[:, np.newaxis]
        Y = Y * roots
        K *= roots
        K *= roots.T
    if not np.isfinite(K).all():
        raise Unsupported("the kernel matrix holds NaN or infinity")
    form = BandForm(K)
    turned, refused = form.turned(Y), dict[int, str]()
    solved = np.zeros((len(alphas), *Y.shape))
    for j, alpha in enumerate(alphas):
        found, condition = form.solve(alpha, turned)
        if np.finfo(np.float64).eps * condition <= MOST_LOSS:
            solved[j] = found
        else:
            refused[j] = f"alpha={alpha:g} is too small for the kernel matrix"
    flat = np.ascontiguousarray(solved.transpose(1, 0, 2)).reshape(n, -1)
    dual = form.turned_back(flat).reshape(n, *solved.shape[::2]).transpose(1, 0, 2)
    return (dual if weights is None else dual * roots), refused


register_family(KernelRidgeFamily())
