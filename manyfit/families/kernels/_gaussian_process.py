"""GaussianProcessRegressor with fixed kernels: one matrix for each kernel, one factor for each alpha."""

import inspect
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from manyfit.families.protocol import (
    Array,
    Cost,
    FoldFamily,
    FoldRows,
    ModelAnswers,
    Responses,
    Settings,
    Shape,
    refused_warnings,
    register_family,
    require_number,
)
from manyfit.folds import Fold, Unsupported
from manyfit.introspection.structural_key import structural_key

# Kernels of scikit-learn's, without those whose values are not one matrix, or are a function of a user's.
KERNELS = {
    cls
    for cls in vars(kernels).values()
    if inspect.isclass(cls) and issubclass(cls, kernels.Kernel)
} - {kernels.CompoundKernel, kernels.PairwiseKernel}  # fmt: skip
# scikit-learn divides by 1 where a standard deviation is no more than rounding.
LEAST_DEVIATION = 1e-12
# Products of larger numbers overflow in the likelihood, of which scikit-learn warns.
LARGEST = 1e150


class GaussianProcessFamily(FoldFamily):
    """GaussianProcessRegressor with ``optimizer=None``, for kernels of scikit-learn's own.

    A fit of scikit-learn's makes the kernel matrix and its factor twice, for the likelihood and to predict.
    The family makes the factor once for each alpha, and the matrix once for all of them, by the same calls.
    So predictions are scikit-learn's to the bit, whatever the condition of the matrix. In memory are two
    matrices of the training rows, as in a fit, and one of the rows to predict.

    Reference: sklearn.gaussian_process.GaussianProcessRegressor (1.9): ``fit`` and ``predict``.
    """

    serves = (GaussianProcessRegressor,)
    free = frozenset({"alpha", "kernel", "normalize_y"})
    reads = FoldRows(device=False)

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.optimizer is not None:
            raise Unsupported("optimizer is not None: each fit chooses a kernel of its own")
        if estimator.copy_X_train is not True:
            raise Unsupported(f"copy_X_train={estimator.copy_X_train!r} lends rows to BLAS")
        if estimator.n_targets is not None:
            raise Unsupported("n_targets is given, which scikit-learn compares with y")
        for setting in settings:
            _require_usual_kernel(setting["kernel"])
            require_number("alpha", setting["alpha"])
            if type(setting["normalize_y"]) is not bool:
                raise Unsupported(f"normalize_y={setting['normalize_y']!r} is not True or False")

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        n, q, m, k = float(shape.n_train), max(shape.n_targets, 1), len(settings), shape.n_splits
        row = n * (2.0 * shape.n_features + 40.0)  # the exponential function takes most
        fit, predict = n**3 / 3.0 + 2.0 * n**2 * q, 2.0 * n * shape.n_test * q
        shared = len(_by_kernel(settings)) * row * (n + shape.n_test) + m * (fit + predict)
        individual = m * (row * (2.0 * n + shape.n_test) + 2.0 * fit + predict)
        return Cost(k * shared, k * individual, memory=int(8 * n * (2 * n + shape.n_test)))

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> ModelAnswers:
        # BLAS multiplies a matrix by itself in another order, and scikit-learn predicts from a copy.
        X, y, models = np.copy(_readable(fold.X_train)), fold.y_train, dict[int, Model]()
        if y.dtype == np.float32 or not (np.abs(y) < LARGEST).all():
            raise Unsupported("y is of float32, or holds numbers that are not finite or too large")
        for places in _by_kernel(settings):
            models.update(_fit(settings, places, X, y))
        refused = {
            j: f"the kernel matrix with alpha={setting['alpha']:g} is not positive definite"
            for j, setting in enumerate(settings)
            if j not in models
        }
        found, n_targets = [*map(models.get, range(len(settings)))], 1 if y.ndim == 1 else y.shape[1]
        return ModelAnswers(found, partial(_responses, X), refused, n_targets=n_targets)


def _require_usual_kernel(kernel: Any) -> None:
    """Refuse kernels with a function or a class of a user's own, and those of other things than numbers."""
    parts = () if kernel is None else (kernel, *kernel.get_params().values())
    for part in parts:
        if isinstance(part, kernels.Kernel) and type(part) not in KERNELS:
            raise Unsupported(f"kernels with {type(part).__name__} are not shared")
    if kernel is not None and not (isinstance(kernel, kernels.Kernel) and kernel.requires_vector_input):
        raise Unsupported("the kernel is not one of rows of numbers")


def _by_kernel(settings: Settings) -> list[list[int]]:
    """The places of settings that have equal kernels."""
    found: dict[Any, list[int]] = {}
    for j, setting in enumerate(settings):
        found.setdefault(structural_key(setting["kernel"]), []).append(j)
    return list(found.values())


def _readable(X: Any) -> Array:
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise Unsupported("X holds NaN or infinity")
    return np.asarray(X)


class Model(NamedTuple):
    """What predicts: a kernel, dual coefficients (n_train,) or (n_train, q), and the location of y."""

    kernel: Any
    dual: Array
    mean: Array
    deviation: Array


def _fit(settings: Settings, places: Sequence[int], X: Array, y: Array) -> Iterator[tuple[int, Model]]:
    """Models of settings with one kernel; none of those whose matrix is not positive definite."""
    given = settings[places[0]]["kernel"]
    kernel = kernels.ConstantKernel() * kernels.RBF() if given is None else clone(given)
    with refused_warnings("the kernel"):
        # The likelihood sets them, which changes their last digits.
        kernel.theta = kernel.theta
        K = kernel(X)
    if K.dtype != np.float64 or not np.isfinite(K).all():
        raise Unsupported("the kernel matrix is not of finite numbers of float64")
    diagonal, targets = K.diagonal().copy(), dict[bool, tuple[Array, Array, Array]]()
    for alpha in dict.fromkeys(settings[j]["alpha"] for j in places):
        np.fill_diagonal(K, diagonal)
        K[np.diag_indices_from(K)] += alpha
        try:
            L = cholesky(K, lower=True, check_finite=False)
        except LinAlgError:
            continue
        for j in places:
            normalized = settings[j]["normalize_y"]
            if settings[j]["alpha"] != alpha:
                continue
            if normalized not in targets:
                targets[normalized] = _normalized(y) if normalized else _as_they_are(y)
            values, mean, deviation = targets[normalized]
            dual = cho_solve((L, True), values, check_finite=False)
            if not (np.abs(dual) < LARGEST).all():
                raise Unsupported("dual coefficients are not finite or too large")
            yield j, Model(kernel, dual, mean, deviation)


def _normalized(y: Array) -> tuple[Array, Array, Array]:
    mean, deviation = np.mean(y, axis=0), np.std(y, axis=0)
    if not (deviation > LEAST_DEVIATION).all():
        raise Unsupported("a column of y is constant")
    return (y - mean) / deviation, mean, deviation


def _as_they_are(y: Array) -> tuple[Array, Array, Array]:
    size = y.shape[1] if y.ndim == 2 else 1
    return y, np.zeros(size), np.ones(size)


def _responses(X_train: Array, X: Any, models: Sequence[Model]) -> Responses:
    return Responses(predict=partial(_predict, X_train, _readable(X), models))


def _predict(X_train: Array, X: Array, models: Sequence[Model]) -> Array:
    found, kernel, K = [np.empty(0)] * len(models), None, np.empty(0)
    with refused_warnings("a prediction"):
        # One matrix at a time.
        for j, model in sorted(enumerate(models), key=lambda one: id(one[1].kernel)):
            if model.kernel is not kernel:
                kernel, K = model.kernel, model.kernel(X, X_train)
            predicted = model.deviation * (K @ model.dual) + model.mean
            found[j] = predicted[:, 0] if predicted.shape[1:] == (1,) else predicted
    return np.stack(found)


register_family(GaussianProcessFamily())
