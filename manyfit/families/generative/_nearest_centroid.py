"""NearestCentroid: the centroids of one fit, shrunken by every threshold."""

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import NearestCentroid

from manyfit.families.generative._answers import (
    ClassAnswers,
    class_answers,
    fit_once,
    given_priors,
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
    lazy_responses,
    register_family,
    require_number,
)
from manyfit.folds import Fold, Unsupported


class CentroidFamily(FoldFamily):
    """NearestCentroid with the Euclidean metric: deviations of class means are cut by the threshold.

    Reference: sklearn.neighbors.NearestCentroid.fit (1.9).
    """

    serves = (NearestCentroid,)
    free = frozenset({"shrink_threshold", "priors"})
    reads = FoldRows(device=False)

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.metric != "euclidean":
            raise Unsupported(f"metric={estimator.metric!r} has medians for centroids")
        for setting in settings:
            if setting["shrink_threshold"] is not None:
                require_number("shrink_threshold", setting["shrink_threshold"], positive=True)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        return one_fit_cost(len(settings), shape, fit=16.0, predict=3.0 * max(shape.n_classes, 1))

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> ClassAnswers:
        fitted = fit_once(estimator, {"shrink_threshold": None, "priors": "uniform"}, fold)
        return class_answers(partial(_shrunken, fitted, fold), settings, _predictions, fitted.classes_)


def _shrunken(fitted: Any, fold: Fold, setting: Setting) -> Any:
    """A copy of the fitted classifier with the centroids and priors of a setting."""
    model, n = copy.copy(fitted), len(fold.y_train)
    counts = np.unique(fold.y_train, return_counts=True)[1]
    priors, threshold = setting["priors"], setting["shrink_threshold"]
    if isinstance(priors, str):
        if priors == "empirical":
            model.class_prior_ = counts / float(n)
    else:
        model.class_prior_ = given_priors(priors, len(counts))
    if threshold is not None:
        spread = fitted.within_class_std_dev_ + np.median(fitted.within_class_std_dev_)
        scale = np.sqrt((1.0 / counts) - (1.0 / n)).reshape(-1, 1) * spread
        cut = np.clip(np.abs(fitted.deviations_) - threshold, 0, None) * np.sign(fitted.deviations_)
        model.centroids_ = fold.X_train.mean(axis=0) + scale * cut
    return model


def _predictions(X: Array, models: Sequence[Any]) -> Responses:
    def of_all(method: str) -> Array:
        with strict_arithmetic():
            return np.stack([getattr(one, method)(X) for one in models])

    return lazy_responses(models[0], of_all)


register_family(CentroidFamily())
