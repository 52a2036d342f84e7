"""GaussianNB: the means and variances of one fit answer every smoothing and prior."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import GaussianNB

from manyfit.families.generative._answers import (
    ClassAnswers,
    fit_once,
    given_priors,
    in_row_blocks,
    joint_probabilities,
    labels_of_largest,
    make_models,
    one_fit_cost,
    strict_arithmetic,
)
from manyfit.families.protocol import (
    Cost,
    Family,
    FoldRows,
    Responses,
    Shape,
    register_family,
    require_number,
)
from manyfit.folds import Fold, FoldedData, Unsupported, map_threads

Array = NDArray[Any]

# Two joint log-likelihoods are told apart if they differ by so many times their rounding.
SAFETY = 16.0
# The smoothing of the one fit. It changes no digit of a variance, and a product with it is exact.
PROBE = 2.0**-900
SMALLEST = 1e-300
# Values in the training rows under which starting threads costs more than they save: 2 MiB of float64.
MIN_THREADED_VALUES = 2**18


class OneFit(NamedTuple):
    """The numbers of one fit of a fold, which serve all settings.

    `means` and `variances` are (n_classes, n_features); `epsilon` is part of the variances, and `largest` is
    the largest variance of a column.
    """

    classes: Array
    prior: Array
    means: Array
    variances: Array
    epsilon: Any
    largest: Any


class Gaussians(NamedTuple):
    """One setting: `prior`, (n_classes,), and `variances`, (n_classes, n_features)."""

    prior: Array
    variances: Array


class GaussianFamily(Family):
    """GaussianNB: ``var_smoothing`` adds a share of the largest variance of a column to all variances.

    Labels are read from squared distances to the means, by one matrix product for each class and all
    settings. Rows where rounding could decide, and all rows where probabilities are scored, are computed as
    scikit-learn does: equal probabilities of several rows count, and the last bit makes them equal.

    References
    ----------
    sklearn.naive_bayes.GaussianNB (1.9): ``fit`` and ``_joint_log_likelihood``.
    """

    serves = (GaussianNB,)
    free = frozenset({"var_smoothing", "priors"})
    result: Literal["exact"] = "exact"
    reads = FoldRows(weights=True, device=False)

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        for setting in settings:
            require_number("var_smoothing", setting["var_smoothing"])

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        return one_fit_cost(len(settings), shape, fit=12.0, predict=6.0 * max(shape.n_classes, 1))

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: FoldedData
    ) -> Iterator[ClassAnswers]:
        for i in range(folded.n_splits):
            fold = folded.fold(i)
            one = _fit_in_parts(fold) if _is_plain(fold) else _fit(estimator, fold)
            models, refused = make_models(partial(_gaussians, one), settings)
            yield ClassAnswers(
                models, partial(_predictions, one), classes=one.classes, refused=refused, fits_made=1
            )


def _is_plain(fold: Fold) -> bool:
    """Whether scikit-learn would read the training rows of a fold as they are, in float64."""
    X, y = fold.X_train, fold.y_train
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.shape[1] > 0
    return plain and y.ndim == 1 and y.dtype.kind in "iub" and fold.fit_weight is None


def _fit_in_parts(fold: Fold) -> OneFit:
    """The fit by the operations of scikit-learn's, in its order, by several threads."""
    X, y = fold.X_train, fold.y_train
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise Unsupported("the training rows have one class")

    def spread(c: int) -> tuple[Array, Array]:
        with strict_arithmetic():
            own = X if c < 0 else X[y == classes[c]]
            mean = np.mean(own, axis=0)
            squares = own - mean
            squares *= squares
            return mean, squares.sum(axis=0) / len(own)

    parts = range(-1, len(classes))
    threaded = X.size >= MIN_THREADED_VALUES
    (_, whole), *found = map_threads(spread, parts) if threaded else [spread(c) for c in parts]
    means, variances = (np.stack(one) for one in zip(*found, strict=True))
    if not (np.isfinite(means).all() and np.isfinite(variances).all()):
        raise Unsupported("X holds NaN or infinity")
    counts = counts.astype(np.float64)
    return OneFit(classes, counts / counts.sum(), means, variances, 0.0, whole.max())


def _fit(estimator: Any, fold: Fold) -> OneFit:
    """A fit of scikit-learn's own."""
    fitted = fit_once(estimator, {"var_smoothing": PROBE, "priors": None}, fold)
    with strict_arithmetic():
        # The fit has multiplied the largest variance with `PROBE`.
        small = not fitted.epsilon_ > SMALLEST
        largest = np.max(np.var(fold.X_train, axis=0)) if small else fitted.epsilon_ / PROBE
    return OneFit(fitted.classes_, fitted.class_prior_, fitted.theta_, fitted.var_, fitted.epsilon_, largest)


def _gaussians(one: OneFit, setting: Mapping[str, Any]) -> Gaussians:
    prior, variances = one.prior, one.variances.copy()
    if setting["priors"] is not None:
        prior = given_priors(setting["priors"], len(prior)).astype(prior.dtype)
    variances += setting["var_smoothing"] * one.largest
    if not ((prior > 0).all() and (variances > one.epsilon).all()):
        raise Unsupported("a class without weight, or a column without variance, makes scikit-learn warn")
    return Gaussians(prior, variances)


def _predictions(one: OneFit, X: Array, models: Sequence[Gaussians]) -> Responses:
    return Responses(
        predict=lambda: _labels(one, X, models),
        predict_proba=lambda: joint_probabilities(_joint(one.means, X, models)),
    )


def _joint(means: Array, X: Array, models: Sequence[Gaussians]) -> Array:
    """Joint log-likelihoods (m, n, n_classes) in the order of scikit-learn's operations."""
    joint = []
    with strict_arithmetic():
        squares = [(X - mean) ** 2 for mean in means]
        for one in models:
            columns = []
            for prior, variances, square in zip(one.prior, one.variances, squares, strict=True):
                n_ij = -0.5 * np.sum(np.log(2.0 * np.pi * variances))
                n_ij = n_ij - 0.5 * np.sum(square / variances, axis=1)
                columns.append(np.log(prior) + n_ij)
            joint.append(np.stack(columns))
    return np.stack(joint).transpose(0, 2, 1)


def _labels(one: OneFit, X: Array, models: Sequence[Gaussians]) -> Array:
    """Labels (m, n) of the most likely classes."""
    if one.means.dtype != np.float64 or X.dtype == np.float32:
        return labels_of_largest(_joint(one.means, X, models), one.classes)
    densities = [_log_density(one.means[c], c, models) for c in range(len(one.classes))]
    scale = max(density.scale for density in densities)
    parts = in_row_blocks(partial(_codes, densities, scale), X, X.shape[1] + 4 * len(models))
    codes, near = (np.concatenate(part) for part in zip(*parts, strict=True))
    for j in map(int, np.flatnonzero(near.any(axis=0))):
        rows = np.flatnonzero(near[:, j])
        codes[rows, j] = np.argmax(_joint(one.means, X[rows], [models[j]])[0], axis=1)
    return np.asarray(one.classes[codes.T])


class _LogDensity(NamedTuple):
    """The joint log-likelihood of one class as ``(x - mean)**2 @ weights + constant``, for m settings.

    `scale` bounds the sizes of the numbers that are added up to `constant`.
    """

    mean: Array
    weights: Array  # (n_features, m)
    constant: Array  # (m,)
    scale: float


def _log_density(mean: Array, c: int, models: Sequence[Gaussians]) -> _LogDensity:
    variances = np.stack([one.variances[c] for one in models], axis=1)
    logs = np.log(2.0 * np.pi * variances)
    constant = np.log([one.prior[c] for one in models]) - 0.5 * logs.sum(axis=0)
    return _LogDensity(mean, -0.5 / variances, constant, float(np.abs(logs).sum(axis=0).max()))


def _codes(densities: Sequence[_LogDensity], scale: float, X: Array) -> tuple[Array, Array]:
    """Positions of the most likely classes, (n, m), and where rounding could decide."""
    codes = np.zeros((X.shape[0], densities[0].constant.size), dtype=np.intp)
    best = second = np.full(codes.shape, -np.inf)
    for c, density in enumerate(densities):
        square = X - density.mean
        square *= square
        joint = square @ density.weights
        joint += density.constant
        np.copyto(codes, c, where=joint > best)
        lower = np.minimum(best, joint)
        second = np.maximum(second, lower, out=lower)
        best = np.maximum(best, joint, out=joint)
    lead = best - second
    rounding = np.abs(best, out=best)
    rounding += scale + 1.0
    rounding *= SAFETY * (X.shape[1] + 8) * np.finfo(np.float64).eps
    return codes, lead <= rounding


register_family(GaussianFamily())
