"""PCA and TruncatedSVD on an X in chunks, from the squares of its columns or from products with few vectors.

Both answer as scikit-learn's solver does: the randomized one draws the same vectors, and multiplies them as
often. Squares of columns fit memory up to some thousand columns, and one pass sums them. A product with few
vectors takes a pass, and needs no such memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip

from manyfit._compat import pca_dimension, pca_solver, set_pca_solver, validate_parameters
from manyfit.estimators._method_call import clear_fit
from manyfit.estimators.chunks._scatter import Scatter, ScatterMatrix, matrix_bytes
from manyfit.estimators.chunks._transformers import TransformedRows, transform
from manyfit.folds import ChunkRows

Array = NDArray[Any]

# Multiplications and bytes a second by which passes are weighed against squares of all columns. They decide
# on time alone.
FLOPS, BYTES = 5e10, 1e9
# A share of variance that differs by less from n_components may be on its other side in scikit-learn.
NEAR_TIE = 1e-9


@dataclass(frozen=True)
class _Vectors:
    """Singular values (k,), right vectors (k, p), and the map of X to the left ones times the values."""

    values: Array
    right: Array
    left: Array


# PCA


def fit_pca(estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None) -> Any:
    """Fit PCA; as many passes as its solver multiplies, or one."""
    _fit_pca(estimator, X)
    return estimator


def fit_transform_pca(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None
) -> TransformedRows:
    """Fit PCA, and the rows of its output."""
    left = _fit_pca(estimator, X)
    if left is None:
        return transform(estimator, inner, X)
    mean = estimator.mean_
    return TransformedRows(X, lambda block: (np.asarray(block) - mean) @ left, (mean, left))


def _fit_pca(estimator: Any, X: ChunkRows) -> Array | None:
    """Fit PCA; the map to its output, if that is not what ``transform`` does."""
    validate_parameters(estimator)
    k, p = estimator.n_components, X.n_columns
    iterates = isinstance(k, Integral) and (
        estimator.svd_solver == "randomized"
        or (estimator.svd_solver == "auto" and pca_solver(estimator, 10 * p, p) == "randomized")
    )
    n_iter = estimator.iterated_power
    if n_iter == "auto":
        n_iter = 7 if iterates and k < 0.1 * p else 4
    scatter = _scatter(estimator, X, k + estimator.n_oversamples if iterates else None, n_iter)
    first = None if isinstance(scatter, ScatterMatrix) else _draw(estimator, scatter, k)
    if first is not None:
        vectors = _randomized(scatter.times, first, k, n_iter)
    n = X.shape[0]
    if first is not None and n < p:
        raise _wide(estimator, n, p)
    solver = pca_solver(estimator, n, p)
    k = min(n, p) - (solver == "arpack") if k is None else k
    _require_components(k, n, p, solver)
    if first is None:
        assert isinstance(scatter, ScatterMatrix)
        if solver == "randomized":
            if n < p:
                raise _wide(estimator, n, p)
            vectors = _randomized(scatter.times, _draw(estimator, scatter, k), k, n_iter, scatter.matrix)
        else:
            vectors = _from_matrix(scatter.matrix, k if solver == "arpack" else None)
    clear_fit(estimator)
    set_pca_solver(estimator, solver)
    values = vectors.values**2 / (n - 1)
    if solver == "full":
        values = values[: min(n, p)]
    total = scatter.total / (n - 1) if solver in ("arpack", "randomized") else values.sum()
    k = _chosen(k, values, total, n)
    noise = 0.0
    if k < min(n, p):
        noise = values[k:].mean() if len(values) > k else (total - values.sum()) / (min(n, p) - k)
    _set(estimator, X, scatter.dtype, {
        "mean_": scatter.mean, "components_": vectors.right[:k], "singular_values_": vectors.values[:k],
        "explained_variance_": values[:k], "explained_variance_ratio_": values[:k] / total,
    })  # fmt: skip
    estimator.n_samples_, estimator.n_components_ = n, k
    estimator.noise_variance_ = noise if noise == 0.0 else scatter.dtype.type(noise)
    if solver != "randomized":
        return None
    left = vectors.left / vectors.values * np.sqrt(n - 1) if estimator.whiten else vectors.left
    return np.asarray(left, dtype=scatter.dtype)


def _require_components(k: Any, n: int, p: int, solver: str) -> None:
    """Raise ValueError for numbers of components that scikit-learn refuses."""
    truncated = solver in ("arpack", "randomized")
    if isinstance(k, str):
        if truncated:
            raise ValueError(f"n_components={k!r} cannot be a string with svd_solver={solver!r}")
        if n < p:
            raise ValueError("n_components='mle' is only supported if n_samples >= n_features")
    elif not int(truncated) <= k <= min(n, p) - (solver == "arpack"):
        raise ValueError(
            f"n_components={k!r} must be between {int(truncated)} and min(n_samples, n_features)"
            f"{' - 1' if solver == 'arpack' else ''}={min(n, p) - (solver == 'arpack')} with "
            f"svd_solver={solver!r}"
        )


def _chosen(k: Any, values: Array, total: float, n: int) -> int:
    """The number of components that ``n_components`` means."""
    if k == "mle":
        return pca_dimension(values, n)
    if not 0 < k < 1.0:
        return int(k)
    share = np.cumsum(values / total)
    if np.abs(share - k).min() <= NEAR_TIE:
        raise ValueError(
            f"n_components={k} is the share of variance of {int(np.abs(share - k).argmin()) + 1} components "
            "but for rounding, by which scikit-learn decides. Give the number of components."
        )
    return int(np.searchsorted(share, k, side="right")) + 1


# TruncatedSVD


def fit_svd(estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None) -> Any:
    """Fit TruncatedSVD; one pass more than its solver multiplies, or one."""
    validate_parameters(estimator)
    k, p = int(estimator.n_components), X.n_columns
    if p < 2:
        raise ValueError(
            f"Found array with {p} feature(s) (shape={X.shape}) while a minimum of 2 is required by "
            f"{type(estimator).__name__}."
        )
    iterates = estimator.algorithm == "randomized"
    if k > p - (not iterates):
        most = "<=" if iterates else "<"
        raise ValueError(f"n_components({k}) must be {most} n_features({p}).")
    scatter = _scatter(estimator, X, k + estimator.n_oversamples if iterates else None, estimator.n_iter)

    def times(Q: Array) -> Array:
        product = scatter.times(Q)
        return np.asarray(product + scatter.n * np.outer(scatter.mean, scatter.mean @ Q))

    matrix = None
    if isinstance(scatter, ScatterMatrix):
        matrix = scatter.matrix + scatter.n * np.outer(scatter.mean, scatter.mean)
    if iterates:
        vectors = _randomized(times, _draw(estimator, scatter, k), k, estimator.n_iter, matrix)
        if scatter.n < p:
            raise _wide(estimator, scatter.n, p)
    else:
        assert matrix is not None
        if k >= scatter.n:
            raise ValueError(f"n_components({k}) must be < n_samples({scatter.n}).")
        vectors = _from_matrix(matrix, k)
    variance = np.einsum("kp,pk->k", vectors.right, scatter.times(vectors.right.T)) / scatter.n
    clear_fit(estimator)
    _set(estimator, X, scatter.dtype, {
        "components_": vectors.right, "singular_values_": vectors.values, "explained_variance_": variance,
        "explained_variance_ratio_": variance / (scatter.total / scatter.n),
    })  # fmt: skip
    return estimator


def fit_transform_svd(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None
) -> TransformedRows:
    """Fit TruncatedSVD, and the rows of its output."""
    return transform(fit_svd(estimator, inner, X), inner, X)


# What both do


def _scatter(estimator: Any, X: ChunkRows, width: int | None, n_iter: int) -> Scatter:
    """The squares of X as a matrix, or by a pass for each product if the solver takes `width` vectors.

    Raises ValueError if the matrix does not fit memory, and is needed.
    """
    p, n = X.n_columns, X.shape[0] if getattr(X, "is_counted", True) else None
    fits = 2 * matrix_bytes(p) <= X.memory
    if width is None:
        if not fits:
            way = "svd_solver" if hasattr(estimator, "svd_solver") else "algorithm"
            raise ValueError(
                f"{type(estimator).__name__} is fitted to X in chunks from the squares of its {p} columns, "
                f"which take {matrix_bytes(p):,} bytes, and half of the memory for it is {X.memory // 2:,}. "
                f"Set {way}='randomized' and a number of components, or allow more memory."
            )
        return ScatterMatrix(X)
    read = p * X.dtype.itemsize / BYTES
    passes = (n_iter + 1) * (read + 4 * p * width / FLOPS)
    if fits and (read + p * p / FLOPS <= passes or width >= p):
        return ScatterMatrix(X)
    if n is not None and n < p:
        raise _wide(estimator, n, p)
    return Scatter(X)


def _wide(estimator: Any, n: int, p: int) -> ValueError:
    return ValueError(
        f"{type(estimator).__name__} draws its vectors otherwise where X has fewer rows than columns, here "
        f"{n} and {p}, and is not fitted to such an X in chunks by the randomized solver. Load X, or fit the "
        "transpose."
    )


def _draw(estimator: Any, scatter: Scatter, k: int) -> Array:
    """The vectors that the randomized solver of scikit-learn starts from, (p, k + n_oversamples)."""
    rng = check_random_state(estimator.random_state)
    drawn = rng.normal(size=(scatter.p, int(k) + estimator.n_oversamples))
    return np.asarray(drawn.astype(scatter.dtype, copy=False), dtype=np.float64)


def _randomized(
    times: Callable[[Array], Array], Q: Array, k: int, n_iter: int, matrix: Array | None = None
) -> _Vectors:
    """What ``randomized_svd`` finds from the vectors `Q`, by products with ``X'X``: ``n_iter + 1`` of them.

    Its normalisations between the products change the vectors, but not the space that they span.
    """
    for _ in range(n_iter):
        Q = qr(times(Q), mode="economic")[0]
    product = times(Q)
    squares = Q.T @ product
    sizes, turn = eigh((squares + squares.T) / 2.0)
    kept = sizes > 10.0 * len(sizes) * np.finfo(np.float64).eps * sizes[-1]
    if kept.sum() < k:
        if matrix is not None:  # nothing is lost to the draw
            return _from_matrix(matrix, k)
        raise ValueError(f"X has {kept.sum()} singular values above rounding, and {k} components were asked.")
    inverse = turn[:, kept] / np.sqrt(sizes[kept])
    U, values, right = svd(inverse.T @ product.T, full_matrices=False)
    left = Q @ inverse @ U[:, :k] * values[:k]
    signs = np.sign(np.take_along_axis(right[:k], np.abs(right[:k]).argmax(axis=1)[:, None], axis=1))
    return _Vectors(values[:k], right[:k] * signs, left * signs[:, 0])


def _from_matrix(matrix: Array, k: int | None) -> _Vectors:
    """All vectors, or the first k, from the eigenvectors of ``X'X``."""
    p = len(matrix)
    found = eigh(matrix, subset_by_index=None if k is None else (p - k, p - 1))
    values, right = np.sqrt(np.maximum(found[0][::-1], 0.0)), found[1][:, ::-1].T.copy()
    _, right = svd_flip(None, right, u_based_decision=False)
    return _Vectors(values, right, right.T)


def _set(estimator: Any, X: ChunkRows, dtype: np.dtype[Any], attributes: dict[str, Array]) -> None:
    for name, value in attributes.items():
        setattr(estimator, name, np.array(value, dtype=dtype, order="C"))
    estimator.n_features_in_ = X.n_columns
    if X.names:
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
