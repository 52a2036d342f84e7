"""Answers of classifiers that follow from sums of the rows of each class."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from manyfit._compat import naive_bayes_log_sum_exp
from manyfit.families.protocol import (
    Array,
    Cost,
    ModelAnswers,
    Role,
    Setting,
    Settings,
    Shape,
    made_or_refused,
    refused_warnings,
)
from manyfit.folds import Fold, SomeRows, Unsupported, map_threads

Model = Any  # what a family keeps of one fitted setting

# Numbers that a thread holds at a time, to predict rows: they stay in the second-level cache.
BLOCK_VALUES, MIN_BLOCK_ROWS = 2**16, 64
# With fewer blocks, starting threads takes longer than they save.
MIN_BLOCKS = 4


class ClassAnswers(ModelAnswers):
    """Answers of one classifier a setting."""

    def respond(self, role: Role, fold: Fold) -> Mapping[str, Array]:
        X = fold.rows(role)
        if not isinstance(X, SomeRows):
            require_finite(X)
        return self.predictions(X, self.models)


@contextmanager
def strict_arithmetic() -> Iterator[None]:
    """Refuse where NumPy would warn: scikit-learn's own fit then gives the warning."""
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            yield
    except FloatingPointError as error:
        raise Unsupported(f"scikit-learn may warn ({error})") from error


def require_finite(X: Any) -> None:
    """Refuse rows that hold NaN or infinity, where scikit-learn raises; sparse ones are checked before."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not np.isfinite(X).all():
        raise Unsupported("X holds NaN or infinity")


def class_answers(
    make: Callable[[Setting], Model],
    settings: Settings,
    predictions: Callable[[Any, Sequence[Model]], Mapping[str, Array]],
    classes: Array,
    fits_made: int = 1,
) -> ClassAnswers:
    """Answers by a model that `make` makes of each setting; those where NumPy would warn are refused."""
    models, refused = made_or_refused(strict_arithmetic()(make), settings)
    return ClassAnswers(models, predictions, refused, classes, fits_made)


def fit_once(estimator: Any, params: Mapping[str, Any], fold: Fold) -> Any:
    """A fit of scikit-learn's own on the training rows; refused if it raises or warns, or finds one class."""
    X, y = fold.X_train, fold.y_train
    if y.ndim != 1:
        raise Unsupported("y has several columns")
    weights = {} if fold.fit_weight is None else {"sample_weight": fold.fit_weight}
    with refused_warnings("a fit"):
        fitted = clone(estimator).set_params(**params).fit(X, y, **weights)
    if len(fitted.classes_) < 2:
        raise Unsupported("the training rows have one class")
    return fitted


def given_priors(priors: Any, n_classes: int) -> Array:
    """Prior probabilities as an array; refused if scikit-learn could raise or warn because of them."""
    if not isinstance(priors, list | tuple | np.ndarray):
        raise Unsupported(f"priors of type {type(priors).__name__} are not shared")
    array = np.asarray(priors)
    if array.shape != (n_classes,) or array.dtype != np.float64:
        raise Unsupported("priors are not one float for each class of the training rows")
    if not ((array > 0).all() and abs(array.sum() - 1.0) < 1e-9):
        raise Unsupported("priors are not positive numbers of sum 1")
    return array


def in_row_blocks(task: Callable[[Array], Any], X: Array, width: int) -> list[Any]:
    """The results of a task for blocks of rows, by several threads, where it holds `width` numbers a row."""
    size = max(MIN_BLOCK_ROWS, BLOCK_VALUES // max(width, 1))
    blocks = [X[start : start + size] for start in range(0, max(len(X), 1), size)]
    return map_threads(task, blocks) if len(blocks) >= MIN_BLOCKS else [task(block) for block in blocks]


def rowwise(
    function: Callable[[Array], tuple[Array, ...]], X: Any, width: int | None = None, axis: int = 0
) -> tuple[Array, ...]:
    """The arrays that a function gives for blocks of rows, joined along an axis.

    Blocks fit a cache where the function holds `width` numbers a row; if that is None, they are all rows in
    memory. Workers of a cluster have to be able to import the function: they call it where they read X.
    """
    if isinstance(X, SomeRows):
        return X.mapped(partial(_of_read, function, width, axis), axis)
    if width is None:
        return function(X)
    parts = in_row_blocks(function, X, width)
    return tuple(np.concatenate(one, axis) for one in zip(*parts, strict=True))


def _of_read(
    function: Callable[[Array], tuple[Array, ...]], width: int | None, axis: int, X: Array
) -> tuple[Array, ...]:
    require_finite(X)
    return rowwise(function, X, width, axis)


def labels_of_largest(scores: Array, classes: Array) -> Array:
    """The class of the largest score, the first of several, from scores (m, n, n_classes)."""
    return np.asarray(classes[np.argmax(scores, axis=2)])


def joint_probabilities(joint: Array) -> Array:
    """Probabilities of the classes from joint log-likelihoods (m, n, n_classes)."""
    rows = joint.reshape(-1, joint.shape[2])
    logs = rows - np.atleast_2d(naive_bayes_log_sum_exp(rows)).T
    return np.asarray(np.exp(logs)).reshape(joint.shape)


def one_fit_cost(n_settings: int, shape: Shape, *, fit: float, predict: float) -> Cost:
    """Operations with one fit a split, from those of a fit and of predictions for each number of X."""
    per_row = shape.n_features if shape.n_entries is None else shape.n_entries / shape.n_train
    fits, predictions = fit * shape.n_train * per_row, predict * shape.n_test * per_row
    k, m = shape.n_splits, n_settings
    return Cost(k * (fits + m * predictions), m * k * (fits + predictions), fits=k)
