"""Scores of single fits, whose targets are checked once for all settings.

scikit-learn's metrics check targets and predictions in each call, which for some thousand rows takes far
longer than their formulas. The formulas here are scikit-learn's, in its order, so that scores are equal to
the bit. What they do not cover, and what scikit-learn or NumPy might warn of, goes through its own metric.

Workers of joblib import this module, so that it imports little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)

Array = NDArray[Any]

# Up to so many rows scikit-learn does not ask whether labels are numbers of a regression.
_FEW_ROWS = 20
# Bytes of targets that a process keeps for a search: there may be thousands of splits.
MOST_KEPT = 2**24


class CheckedTargets:
    """Targets of some rows; `labels` and `numbers` are None where only scikit-learn's metric reads them.

    `array`: their values, (n,), n > 0; None if they are not in an array or a series of one, or no metric here
    reads them.
    """

    def __init__(self, y: Any) -> None:
        self.y, array = y, _array_of(y)
        read = array is not None and array.ndim == 1 and array.size and array.dtype.kind in "biufU"
        self.array = array if read else None

    @cached_property
    def labels(self) -> Array | None:
        """(n,), integers, bools or texts."""
        array = self.array
        return array if array is not None and array.dtype.kind in "biuU" and _are_classes(array) else None

    @cached_property
    def numbers(self) -> Array | None:
        """(n, 1), finite numbers in float64."""
        array = self.array
        if array is None or not (array.dtype.kind in "iu" or array.dtype == np.float64):
            return None
        column = array.astype(np.float64, copy=False).reshape(-1, 1)
        return column if np.isfinite(column).all() else None

    @cached_property
    def squares(self) -> Any:
        """The sum of squares of `numbers` about their mean, a scalar of NumPy."""
        assert self.numbers is not None
        return np.sum((self.numbers - np.average(self.numbers, axis=0)) ** 2, axis=0)[0]


def _array_of(y: Any) -> Array | None:
    """An array of NumPy, or the one that a series of pandas holds.

    None for subclasses: scikit-learn reads the values that a masked array hides, for one.
    """
    if isinstance(getattr(y, "dtype", None), np.dtype) and hasattr(y, "to_numpy"):
        y = y.to_numpy()
    return y if type(y) is np.ndarray else None


def _are_classes(labels: Array) -> bool:
    """Whether scikit-learn certainly takes labels for classes without a warning."""
    return labels.size <= _FEW_ROWS or 2 * np.unique(labels).size <= labels.size


def _accuracy(targets: CheckedTargets, predicted: Array) -> float | None:
    labels = targets.labels
    if labels is None or predicted.dtype != labels.dtype or not _are_classes(predicted):
        return None
    return float((labels == predicted).mean())


def _from_residuals(formula: Callable[[CheckedTargets, Array], float | None]) -> Any:
    """A metric of the residuals (n, 1) of finite predictions in float64."""

    def metric(targets: CheckedTargets, predicted: Array) -> float | None:
        numbers = targets.numbers
        if numbers is None or predicted.dtype != np.float64 or not np.isfinite(predicted).all():
            return None
        try:
            with np.errstate(all="raise"):
                return formula(targets, numbers - predicted.reshape(-1, 1))
        except FloatingPointError:
            return None

    return metric


def _r2(targets: CheckedTargets, residuals: Array) -> float | None:
    numerator = np.sum(residuals**2, axis=0)[0]
    if len(residuals) < 2 or targets.squares == 0.0 or numerator == 0.0:
        return None
    return float(1.0 - numerator / targets.squares)


_FORMULAS: Mapping[Callable[..., Any], Callable[[CheckedTargets, Array], float | None]] = {
    accuracy_score: _accuracy,
    r2_score: _from_residuals(_r2),
    mean_squared_error: _from_residuals(lambda _, R: float(np.average(R**2, axis=0)[0])),
    root_mean_squared_error: _from_residuals(lambda _, R: float(np.sqrt(np.average(R**2, axis=0))[0])),
    mean_absolute_error: _from_residuals(lambda _, R: float(np.average(np.abs(R), axis=0)[0])),
}


class PlainScorer:
    """The scorers of a search, each of which is a metric above, without options, of what ``predict`` returns.

    `metrics`: metric and sign by name.
    """

    def __init__(self, metrics: Mapping[str, tuple[Callable[..., Any], float]], multimetric: bool) -> None:
        self._metrics, self._multimetric = metrics, multimetric

    def __call__(self, model: Any, X: Any, targets: CheckedTargets) -> Any:
        """The score of a fitted model, or a dict of scores by name, as scikit-learn's scorer gives it."""
        predicted = model.predict(X)
        scores = {
            name: sign * _score(metric, targets, predicted) for name, (metric, sign) in self._metrics.items()
        }
        return scores if self._multimetric else scores["score"]


def _score(metric: Callable[..., Any], targets: CheckedTargets, predicted: Any) -> float:
    found = None
    array = targets.array
    if array is not None and type(predicted) is np.ndarray and predicted.shape == array.shape:
        found = _FORMULAS[metric](targets, predicted)
    return float(metric(targets.y, predicted)) if found is None else found


class SplitScorers:
    """Scorers that scikit-learn's own function calls; each checks the targets of its split once for all fits.

    `scorer` is that of the search, and `plain` the same for estimators of class `scored`, or with such a last
    step. Targets of at most `MOST_KEPT` bytes are kept.
    """

    def __init__(self, scorer: Any, plain: PlainScorer, scored: type) -> None:
        self._scorer, self._plain, self._scored = scorer, plain, scored
        self._checked: dict[int, list[tuple[Array, CheckedTargets]]] = {}
        self._n_bytes = 0

    def of_split(self, i: int) -> Callable[[Any, Any, Any], Any]:
        """The scorer of fits on split `i`."""
        return partial(self._score, i)

    def _score(self, i: int, model: Any, X: Any, y: Any) -> Any:
        if type(_last_step(model)) is self._scored:
            with suppress(Exception):  # what fails is repeated, so that scikit-learn's call raises the error
                return self._plain(model, X, self._checked_before(i, y))
        return self._scorer(model, X, y)

    def _checked_before(self, i: int, y: Any) -> CheckedTargets:
        """Those of the checked targets of split `i` that are equal to `y`, or else new ones."""
        targets = CheckedTargets(y)
        array, kept = targets.array, self._checked.setdefault(i, [])
        if array is None:
            return targets
        for before, one in kept:
            if before.dtype == array.dtype and np.array_equal(before, array):
                return one
        n_bytes = self._n_bytes + array.nbytes
        if len(kept) < 2 and n_bytes <= MOST_KEPT:  # those of training and test rows
            kept.append((array, targets))
            self._n_bytes = n_bytes
        return targets


def _last_step(model: Any) -> Any:
    """What makes the score of a pipeline, its last step; any other estimator itself.

    `composites.last_step` does the same, but its module imports much.
    """
    while steps := getattr(model, "steps", None):
        model = steps[-1][1]
    return model


def plain_scorer(scorer: Any, estimator: Any) -> PlainScorer | None:
    """The `PlainScorer` of a search for an estimator; None if a scorer needs scikit-learn's own call.

    With metadata routing, a scorer also asks all steps for their requests.
    """
    from manyfit._compat import is_multimetric, routing_enabled, scorers_by_name

    if routing_enabled():
        return None
    found = {name: _metric(one, estimator) for name, one in scorers_by_name(scorer).items()}
    known = {name: one for name, one in found.items() if one is not None and one[0] in _FORMULAS}
    return PlainScorer(known, is_multimetric(scorer)) if len(known) == len(found) else None


def split_scorers(scorer: Any, estimator: Any) -> SplitScorers | None:
    """The `SplitScorers` of a search with one scorer; None if scikit-learn's own call is needed."""
    from manyfit._compat import is_multimetric

    plain = None if is_multimetric(scorer) else plain_scorer(scorer, estimator)
    return None if plain is None else SplitScorers(scorer, plain, type(_last_step(estimator)))


def _metric(scorer: Any, estimator: Any) -> tuple[Callable[..., Any], float] | None:
    """Metric and sign of a scorer that reads what ``predict`` returns, without options."""
    from manyfit._compat import PassthroughScorer, metric_of_score, scorer_parts

    if isinstance(scorer, PassthroughScorer):
        metric = metric_of_score(type(_last_step(estimator)))
        return None if metric is None else (metric, 1.0)
    parts = scorer_parts(scorer)
    if parts is None:
        return None
    metric, sign, options, response = parts
    return (metric, sign) if response == "predict" and not options else None
