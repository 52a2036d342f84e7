"""RadiusNeighborsClassifier and -Regressor: one query of the largest radius answers the smaller ones."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import RadiusNeighborsClassifier, RadiusNeighborsRegressor

from manyfit.families.neighbours._query import (
    NeighborhoodAnswers,
    chunk_size,
    require_metric,
    require_rows,
    require_weighting,
)
from manyfit.families.neighbours._radius_answers import Fit, Respond, Within, radius_responses
from manyfit.families.neighbours._radius_query import PAIR_BYTES, Ball
from manyfit.families.protocol import (
    Answers,
    Array,
    Cost,
    FoldFamily,
    Settings,
    Shape,
    made_or_refused,
    refused_warnings,
    register_family,
)
from manyfit.folds import Fold, Unsupported

# Squares of radii between these two neither overflow nor lose digits, nor do their powers up to MOST_P.
SMALLEST, LARGEST = 1e-60, 1e60
MOST_P = 4.0

# A response is made of a ball, and of whether near neighbours weigh more.
Reduce = Callable[[Ball, bool], Array]


class RadiusFamily(FoldFamily):
    """Estimators of neighbours within a radius: `radius` and `weights` are read off one query.

    scikit-learn adds weights and targets in an order that does not depend on the radius, so that sums are its
    own to the bit. It is asked again about rows that have a neighbour at the radius but for rounding, and
    about those that have no neighbour.
    """

    free = frozenset({"radius", "weights"})

    def check(self, estimator: Any, settings: Settings) -> None:
        require_metric(estimator)
        if estimator.metric_params is not None:
            raise Unsupported("metric_params are not shared")
        if estimator.metric == "minkowski" and not (1 <= estimator.p <= MOST_P or estimator.p == np.inf):
            raise Unsupported(f"p={estimator.p!r} is not between 1 and {MOST_P:g}")
        for setting in settings:
            radius = setting["radius"]
            if type(radius) not in (int, float, np.float64, np.int64):
                raise Unsupported(f"radius={radius!r} is not a number")
            if radius != 0 and not SMALLEST <= radius <= LARGEST:
                raise Unsupported(f"radius={radius!r} is not between {SMALLEST:g} and {LARGEST:g}")
            require_weighting(setting["weights"])

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        k, m, pairs = shape.n_splits, len(settings), float(shape.n_train) * shape.n_test
        query = 2.0 * pairs * max(shape.n_features, 1)
        outputs = max(shape.n_classes, shape.n_targets, 1)
        memory = PAIR_BYTES * shape.n_train * min(shape.n_test, chunk_size()) + 8 * m * shape.n_test * outputs
        return Cost(k * (query + 2.0 * m * pairs), m * k * (query + 4.0 * pairs), fits=k, memory=memory)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        if fold.fit_weight is not None:
            raise Unsupported("fit takes no weights")
        asked = [Within(setting["radius"], setting["weights"]) for setting in settings]
        X, y = fold.X_train, fold.y_train
        with refused_warnings("a fit"):
            largest = max(one.radius for one in asked)
            model = clone(estimator).set_params(radius=largest, weights="uniform").fit(X, y)
        require_rows(X, model)
        reduce, methods, classes = self._reductions(y)
        fit = Fit(model, asked, reduce)
        found, places = fit.found("test", fold.X_test), range(len(settings))
        _, refused = made_or_refused(lambda j: found.complete(j, next(iter(methods))), places)
        n_targets = 1 if y.ndim == 1 else y.shape[1]
        predictions = partial(radius_responses, fit, methods)
        return NeighborhoodAnswers(places, predictions, refused, classes, 1, n_targets)

    def _reductions(self, y: Array) -> tuple[Reduce, dict[str, Respond], Array | None]:
        """How a ball is summed, responses by method, and classes."""
        raise NotImplementedError


class RadiusClassifierFamily(RadiusFamily):
    """RadiusNeighborsClassifier with one target: probabilities and labels are scikit-learn's to the bit.

    Reference: sklearn.neighbors.RadiusNeighborsClassifier (1.9): ``predict`` and ``predict_proba``.
    """

    serves = (RadiusNeighborsClassifier,)

    def _reductions(self, y: Array) -> tuple[Reduce, dict[str, Respond], Array | None]:
        if y.ndim != 1:
            raise Unsupported("y has several columns")
        classes, codes = np.unique(y, return_inverse=True)
        n = len(classes)
        if n < 2:
            raise Unsupported("the training rows have one class")

        def votes(ball: Ball, by_distance: bool) -> Array:
            cells, rows = ball.lines * n + codes[ball.indices], len(ball.near)
            weights = ball.weights if by_distance else None
            return np.bincount(cells, weights, minlength=rows * n).reshape(rows, n)

        methods: dict[str, Respond] = {
            "predict_proba": _shares,
            "predict": lambda found: classes.take(_shares(found).argmax(axis=1)),
        }
        return votes, methods, classes


def _shares(votes: Array) -> Array:
    total = votes.sum(axis=1)[:, np.newaxis]
    total[total == 0.0] = 1.0
    return votes / total


class RadiusRegressorFamily(RadiusFamily):
    """RadiusNeighborsRegressor with one or several targets.

    Reference: sklearn.neighbors.RadiusNeighborsRegressor.predict (1.9).
    """

    serves = (RadiusNeighborsRegressor,)

    def _reductions(self, y: Array) -> tuple[Reduce, dict[str, Respond], Array | None]:
        if (
            y.dtype != np.float64
        ):  # scikit-learn warns of a NaN that it casts to integers, for every prediction
            raise Unsupported(f"targets are {y.dtype}, not float64")
        if not np.isfinite(y).all():
            raise Unsupported("y holds NaN or infinity")
        targets = y if y.ndim == 2 else y[:, np.newaxis]

        def means(ball: Ball, by_distance: bool) -> Array:
            values, counts = targets[ball.indices], ball.counts
            divisor: Array = counts[:, np.newaxis]
            if by_distance:
                weights = ball.weights[:, np.newaxis]
                values = values * weights
                divisor = _sums(weights, ball.lines, counts)
            with np.errstate(invalid="ignore"):  # rows without neighbours
                found = _sums(values, ball.lines, counts) / divisor
            return found if y.ndim == 2 else found[:, 0]

        return means, {"predict": lambda found: found.copy()}, None


def _sums(values: Array, lines: Array, counts: Array) -> Array:
    """Sums of the values of each line, (n, q), in the order in which NumPy adds up an array of one line."""
    if values.shape[1] > 1:
        columns = [np.bincount(lines, column, minlength=len(counts)) for column in values.T]
        return np.stack(columns, axis=1)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    # NumPy starts from zero and adds pairs of pairs; `reduceat` starts from the first value.
    padded = np.zeros(len(lines) + len(counts))
    padded[np.arange(len(lines)) + lines + 1] = values[:, 0]
    return np.add.reduceat(padded, starts + np.arange(len(counts)))[:, np.newaxis]


register_family(RadiusClassifierFamily())
register_family(RadiusRegressorFamily())
