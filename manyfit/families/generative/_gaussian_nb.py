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
from manyfit.folds import FoldedData, Unsupported

Array = NDArray[Any]

# Two joint log-likelihoods are told apart if they differ by so many times their rounding.
SAFETY = 16.0
# The smoothing of the one fit. It changes no digit of a variance, and a product with it is exact.
PROBE = 2.0**-900
SMALLEST = 1e-300


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
            fitted = fit_once(estimator, {"var_smoothing": PROBE, "priors": None}, fold)
            with strict_arithmetic():
                largest = _largest_variance(fitted, fold.X_train)
            models, refused = make_models(partial(_gaussians, fitted, largest), settings)
            yield ClassAnswers(
                models, partial(_predictions, fitted), classes=fitted.classes_, refused=refused, fits_made=1
            )


def _largest_variance(fitted: Any, X: Array) -> Any:
    """The largest variance of a column, which the fit has multiplied with `PROBE`."""
    if fitted.epsilon_ > SMALLEST:
        return fitted.epsilon_ / PROBE
    return np.max(np.var(X, axis=0))


def _gaussians(fitted: Any, largest: Any, setting: Mapping[str, Any]) -> Gaussians:
    prior, variances = fitted.class_prior_, fitted.var_.copy()
    if setting["priors"] is not None:
        prior = given_priors(setting["priors"], len(prior)).astype(prior.dtype)
    variances += setting["var_smoothing"] * largest
    if not ((prior > 0).all() and (variances > fitted.epsilon_).all()):
        raise Unsupported("a class without weight, or a column without variance, makes scikit-learn warn")
    return Gaussians(prior, variances)


def _predictions(fitted: Any, X: Array, models: Sequence[Gaussians]) -> Responses:
    return Responses(
        predict=lambda: _labels(fitted, X, models),
        predict_proba=lambda: joint_probabilities(_joint(fitted.theta_, X, models)),
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


def _labels(fitted: Any, X: Array, models: Sequence[Gaussians]) -> Array:
    """Labels (m, n) of the most likely classes."""
    if fitted.theta_.dtype != np.float64 or X.dtype == np.float32:
        return labels_of_largest(_joint(fitted.theta_, X, models), fitted.classes_)
    codes, near = _codes(fitted.theta_, X, models)
    for j in map(int, np.flatnonzero(near.any(axis=0))):
        rows = np.flatnonzero(near[:, j])
        codes[rows, j] = np.argmax(_joint(fitted.theta_, X[rows], [models[j]])[0], axis=1)
    return np.asarray(fitted.classes_[codes.T])


def _codes(means: Array, X: Array, models: Sequence[Gaussians]) -> tuple[Array, Array]:
    """Positions of the most likely classes, (n, m), and where rounding could decide."""
    codes, scale = np.zeros((X.shape[0], len(models)), dtype=np.intp), 0.0
    best = second = np.full(codes.shape, -np.inf)
    for c, mean in enumerate(means):
        variances = np.stack([one.variances[c] for one in models], axis=1)
        logs = np.log(2.0 * np.pi * variances)
        scale = max(scale, float(np.abs(logs).sum(axis=0).max()))
        square = X - mean
        square *= square
        joint = square @ (-0.5 / variances)
        joint += np.log([one.prior[c] for one in models]) - 0.5 * logs.sum(axis=0)
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
