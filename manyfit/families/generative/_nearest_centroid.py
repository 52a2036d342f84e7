"""NearestCentroid: the centroids of one fit, shrunken by every threshold."""

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.neighbors import NearestCentroid

from manyfit.families.generative._answers import (
    ClassAnswers,
    fit_once,
    given_priors,
    make_models,
    one_fit_cost,
    strict_arithmetic,
)
from manyfit.families.protocol import (
    Array,
    Cost,
    Family,
    FoldRows,
    Responses,
    Setting,
    Settings,
    Shape,
    register_family,
    require_number,
)
from manyfit.folds import Fold, FoldedData, Unsupported

METHODS = ("predict", "decision_function", "predict_proba")


class CentroidFamily(Family):
    """NearestCentroid with the Euclidean metric: deviations of class means are cut by the threshold.

    Reference: sklearn.neighbors.NearestCentroid.fit (1.9).
    """

    serves = (NearestCentroid,)
    free = frozenset({"shrink_threshold", "priors"})
    result: Literal["exact"] = "exact"
    reads = FoldRows(device=False)

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.metric != "euclidean":
            raise Unsupported(f"metric={estimator.metric!r} has medians for centroids")
        for setting in settings:
            if setting["shrink_threshold"] is not None:
                require_number("shrink_threshold", setting["shrink_threshold"], positive=True)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        return one_fit_cost(len(settings), shape, fit=16.0, predict=3.0 * max(shape.n_classes, 1))

    def fit_many(self, estimator: Any, settings: Settings, folded: FoldedData) -> Iterator[ClassAnswers]:
        for i in range(folded.n_splits):
            fold = folded.fold(i)
            fitted = fit_once(estimator, {"shrink_threshold": None, "priors": "uniform"}, fold)
            models, refused = make_models(partial(_shrunken, fitted, fold), settings)
            yield ClassAnswers(models, _predictions, classes=fitted.classes_, refused=refused, fits_made=1)


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

    return Responses(**{method: partial(of_all, method) for method in METHODS})


register_family(CentroidFamily())
