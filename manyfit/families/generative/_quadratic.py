"""QuadraticDiscriminantAnalysis: one singular value decomposition of each class answers all settings."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from manyfit.families.generative._answers import (
    ClassAnswers,
    class_answers,
    fit_once,
    given_priors,
    labels_of_largest,
    one_fit_cost,
    strict_arithmetic,
)
from manyfit.families.protocol import (
    Array,
    Cost,
    FoldFamily,
    FoldRows,
    Responses,
    Setting,
    Settings,
    Shape,
    register_family,
    require_number,
)
from manyfit.folds import Fold, Unsupported


class Ellipsoids(NamedTuple):
    """One setting: `log_prior`, (n_classes,), and the `variances` of each class along its axes."""

    log_prior: Array
    variances: list[Array]


class QuadraticFamily(FoldFamily):
    """QuadraticDiscriminantAnalysis with ``solver="svd"``, the only one before scikit-learn 1.8.

    The axes of a class do not depend on ``reg_param``. Decision values come from scikit-learn's own formulas,
    so that no bit differs.

    Reference: sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis (1.9): ``_solve_svd``,
    ``_decision_function``.
    """

    serves = (QuadraticDiscriminantAnalysis,)
    free = frozenset({"reg_param", "priors", "tol"})
    reads = FoldRows(device=False)

    def check(self, estimator: Any, settings: Settings) -> None:
        if getattr(estimator, "solver", "svd") != "svd":
            raise Unsupported(f"solver={estimator.solver!r} decomposes another matrix for each shrinkage")
        if getattr(estimator, "shrinkage", None) is not None:
            raise Unsupported("solver='svd' does not shrink")
        if getattr(estimator, "covariance_estimator", None) is not None:
            raise Unsupported("an estimator of covariances is fitted for each setting")
        for setting in settings:
            require_number("reg_param", setting["reg_param"])
            require_number("tol", setting["tol"])

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        p, n_classes = shape.n_features, max(shape.n_classes, 1)
        return one_fit_cost(len(settings), shape, fit=6.0 * p, predict=2.0 * p * n_classes)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> ClassAnswers:
        fitted = fit_once(estimator, {"reg_param": 0.0, "priors": None, "tol": 0.0}, fold)
        predictions = partial(_predictions, fitted)
        return class_answers(partial(_ellipsoids, fitted), settings, predictions, fitted.classes_)


def _ellipsoids(fitted: Any, setting: Setting) -> Ellipsoids:
    share, priors = setting["reg_param"], fitted.priors_
    if setting["priors"] is not None:
        priors = given_priors(setting["priors"], len(priors))
    variances = [((1 - share) * one) + share for one in fitted.scalings_]
    if any((one <= setting["tol"]).any() for one in variances):
        raise Unsupported("the covariance matrix of a class is not of full rank")
    return Ellipsoids(np.log(priors), variances)


def _predictions(fitted: Any, X: Array, models: Sequence[Ellipsoids]) -> Responses:
    """Responses from scores (m, n, n_classes) whose softmax are probabilities.

    Reference: sklearn.discriminant_analysis.DiscriminantAnalysisPredictionMixin (1.9).
    """
    with strict_arithmetic():
        scores = np.stack([_decisions(fitted, X, one) for one in models])

    def probabilities() -> Array:
        with strict_arithmetic():
            logs = scores - scores.max(axis=2)[:, :, np.newaxis]
            return np.asarray(np.exp(logs - np.log(np.exp(logs).sum(axis=2)[:, :, np.newaxis])))

    return Responses(
        predict=lambda: labels_of_largest(scores, fitted.classes_),
        decision_function=lambda: scores if scores.shape[2] > 2 else scores[:, :, 1] - scores[:, :, 0],
        predict_proba=probabilities,
    )


def _decisions(fitted: Any, X: Array, one: Ellipsoids) -> Array:
    """Logarithms of posterior probabilities (n, n_classes), up to a number for each row."""
    norms = []
    for mean, axes, variances in zip(fitted.means_, fitted.rotations_, one.variances, strict=True):
        whitened = np.dot(X - mean, axes * (variances ** (-0.5)))
        norms.append(np.sum(whitened**2, axis=1))
    volumes = np.asarray([np.sum(np.log(variances)) for variances in one.variances])
    return np.asarray(-0.5 * (np.array(norms).T + volumes) + one.log_prior)


register_family(QuadraticFamily())
