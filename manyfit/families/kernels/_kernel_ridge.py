"""KernelRidge: one tridiagonal form of the kernel matrix answers all penalties."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal, lapack
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels

from manyfit.families.protocol import (
    Answers,
    Cost,
    Family,
    FoldRows,
    Responses,
    Role,
    Shape,
    refused_warnings,
    register_family,
    require_number,
)
from manyfit.folds import Fold, FoldedData, Unsupported

Array = NDArray[Any]

# The loss of digits, relative to the targets, up to which dual coefficients are scikit-learn's to rounding.
MOST_LOSS = 1e-10
# Numbers of a block of a kernel matrix, for predictions: 32 MB.
BLOCK = 2**22
# A tridiagonal form takes as long as this many Cholesky factors: half of it is products with vectors.
FACTORS = 5.0


class KernelRidgeFamily(Family):
    """KernelRidge with one penalty for all targets, for kernels that scikit-learn has by name.

    The kernel matrix is ``K = Q T Q'`` with a tridiagonal T, so that ``(K + alpha I)^-1 y`` costs a solution
    with ``T + alpha I`` and a product with Q. In memory are the kernel matrix of the training rows, half as
    much as in a fit of scikit-learn's, and a block of the one of the rows to predict.

    References
    ----------
    sklearn.linear_model._ridge._solve_cholesky_kernel (1.9).
    """

    serves = (KernelRidge,)
    free = frozenset({"alpha"})
    result: Literal["exact"] = "exact"
    reads = FoldRows(sparse=True, weights=True, device=False)

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        if not isinstance(estimator.kernel, str):
            raise Unsupported("kernel is a function")
        if estimator.kernel == "precomputed":
            raise Unsupported("kernel='precomputed' is not shared")
        for setting in settings:
            require_number("alpha", setting["alpha"])

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        n, q, m, k = float(shape.n_train), max(shape.n_targets, 1), len(settings), shape.n_splits
        kernel = n * (n + shape.n_test) * (2.0 * shape.n_features + 40.0)  # the exponential function
        factor, solve = n**3 / 3.0, 2.0 * n**2 * q
        shared = kernel + FACTORS * factor + 3.0 * m * solve
        return Cost(k * shared, k * m * (kernel + factor + 2.0 * solve))

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: FoldedData
    ) -> Iterator["KernelAnswers"]:
        alphas = np.array([float(setting["alpha"]) for setting in settings])
        for i in range(folded.n_splits):
            fold = folded.fold(i)
            kernel, y = Kernel(estimator, fold.X_train), fold.y_train
            dual, refused = _dual_coefficients(kernel, y, fold.fit_weight, alphas)
            yield KernelAnswers(kernel, dual, y.ndim == 1, refused)


class Kernel:
    """The kernel function of an estimator, between rows and the training rows; float64.

    Parameters
    ----------
    estimator : KernelRidge
        With ``kernel``, ``gamma``, ``degree`` and ``coef0``.
    X : ndarray or CSR matrix of shape (n_train, p)
        The training rows.

    Raises
    ------
    Unsupported
        If they have another precision, or values that are not finite.
    """

    def __init__(self, estimator: Any, X: Any) -> None:
        names = ("gamma", "degree", "coef0")
        self.name, self.params = estimator.kernel, {name: getattr(estimator, name) for name in names}
        self.X = _readable(X)

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


@dataclass(frozen=True)
class KernelAnswers(Answers):
    """Dual coefficients of all settings.

    Attributes
    ----------
    kernel : Kernel
        Of the fold.
    dual : ndarray of shape (n_settings, n_train, q)
        Dual coefficients; those of refused settings are not read.
    flat : bool
        Whether y has one dimension.
    refused : mapping of int to str
        See `Answers`.
    """

    kernel: Kernel
    dual: Array
    flat: bool
    refused: Mapping[int, str] = field(default_factory=dict)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Columns of y."""
        return int(self.dual.shape[2])

    def subset(self, settings: Sequence[int]) -> "KernelAnswers":
        """See `Answers`."""
        return replace(self, dual=self.dual[list(settings)], refused={})

    def respond(self, role: Role, fold: Fold) -> Mapping[str, Array]:
        """See `Answers`."""
        return Responses(predict=partial(self._predict, fold.rows(role)))

    def _predict(self, X: Any) -> Array:
        m, n, q = self.dual.shape
        found = self.kernel.products(X, self.dual.transpose(1, 0, 2).reshape(n, m * q))
        predicted = np.ascontiguousarray(found.reshape(-1, m, q).transpose(1, 0, 2))
        return predicted[:, :, 0] if self.flat else predicted


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
    reflectors, diagonal, beside, tau = _tridiagonal(K)
    rotated = _rotate(reflectors, tau, Y, transposed=True)
    loss = _losses(diagonal, beside, alphas)
    refused = {
        j: f"alpha={alphas[j]:g} is too small for the kernel matrix"
        for j in range(len(alphas))
        if not loss[j] <= MOST_LOSS
    }
    solved = np.zeros((len(alphas), *Y.shape))
    for j, alpha in enumerate(alphas):
        if j not in refused:
            *_, solved[j], info = lapack.dptsv(diagonal + alpha, beside, rotated)
            if info:
                refused[j] = f"alpha={alpha:g} leaves the kernel matrix singular"
    flat = np.ascontiguousarray(solved.transpose(1, 0, 2)).reshape(n, -1)
    dual = _rotate(reflectors, tau, flat, transposed=False).reshape(n, *solved.shape[::2]).transpose(1, 0, 2)
    return (dual if weights is None else dual * roots), refused


def _tridiagonal(K: Array) -> tuple[Array, Array, Array, Array]:
    """Reflectors, diagonal, its neighbour and factors of ``K = Q T Q'``, in the memory of K."""
    lwork = int(lapack.dsytrd_lwork(len(K), lower=1)[0])
    reflectors, diagonal, beside, tau, info = lapack.dsytrd(K.T, lower=1, lwork=lwork, overwrite_a=1)
    if info:
        raise Unsupported("the kernel matrix has no tridiagonal form")
    return reflectors, diagonal, beside, tau


def _rotate(reflectors: Array, tau: Array, B: Array, transposed: bool) -> Array:
    """``Q @ B`` or ``Q.T @ B``; the first row stays as it is."""
    lower, trans = reflectors[1:, :-1], "T" if transposed else "N"
    rest = np.asfortranarray(B[1:])
    lwork = int(lapack.dormqr("L", trans, lower, tau, rest, -1)[1][0])
    rotated, _, info = lapack.dormqr("L", trans, lower, tau, rest, lwork)
    if info:
        raise Unsupported("LAPACK refuses the reflectors")
    return np.concatenate([B[:1], rotated])


def _losses(diagonal: Array, beside: Array, alphas: Array) -> Array:
    """Bounds of the relative rounding errors of solutions; infinite for matrices that are not positive."""
    n = len(diagonal)
    least, most = (
        float(eigvalsh_tridiagonal(diagonal, beside, select="i", select_range=(j, j))[0]) for j in (0, n - 1)
    )
    shifted = alphas + least
    with np.errstate(divide="ignore", over="ignore"):
        losses = np.finfo(np.float64).eps * (most + alphas) / shifted
    return np.where(shifted > 0, losses, np.inf)


register_family(KernelRidgeFamily())
