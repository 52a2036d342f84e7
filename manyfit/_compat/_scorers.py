"""scikit-learn's scorers and metrics."""

import copy
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import sklearn.metrics
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics._scorer import (
    _BaseScorer,
    _MultimetricScorer,
    _Scorer,
    negative_likelihood_ratio,
    positive_likelihood_ratio,
)
from sklearn.metrics._scorer import _PassthroughScorer as PassthroughScorer
from sklearn.metrics.cluster._unsupervised import check_number_of_labels
from sklearn.utils._param_validation import validate_parameter_constraints

from manyfit._compat._search import process_routing, routing_enabled

__all__ = [
    "PassthroughScorer",
    "check_metric_options",
    "check_number_of_labels",
    "d2_brier_score",
    "is_multimetric",
    "log_loss_is_of_float64",
    "map_scorers",
    "metric_of_score",
    "needs_estimator",
    "negative_likelihood_ratio",
    "positive_likelihood_ratio",
    "raise_scorer_errors",
    "replace_metric",
    "score_params_by_name",
    "scorer_parts",
    "scorers_by_name",
]

# None before scikit-learn 1.8.
d2_brier_score = getattr(sklearn.metrics, "d2_brier_score", None)


# scikit-learn defines their ``score`` for the docstring only; it calls that of the mixin.
_ACCURATE_NEIGHBORS = ("KNeighborsClassifier", "RadiusNeighborsClassifier")


def metric_of_score(cls: type) -> Callable[..., Any] | None:
    """The metric that ``score`` of a class is of what ``predict`` returns; None if it may be another one."""
    score, neighbors = getattr(cls, "score", None), sys.modules.get("sklearn.neighbors")
    accuracies = [getattr(neighbors, name, None) for name in _ACCURATE_NEIGHBORS]
    if any(score is one.score for one in (ClassifierMixin, *accuracies) if one is not None):
        return sklearn.metrics.accuracy_score  # type: ignore[no-any-return]
    return sklearn.metrics.r2_score if score is RegressorMixin.score else None


def is_multimetric(scorer: Any) -> bool:
    """Whether a scorer is scikit-learn's bundle of several."""
    return isinstance(scorer, _MultimetricScorer)


def scorers_by_name(scorer: Any) -> dict[str, Any]:
    """The single scorers behind a scorer, by the names of their columns in ``cv_results_``."""
    return dict(scorer._scorers) if is_multimetric(scorer) else {"score": scorer}


def scorer_parts(scorer: Any) -> tuple[Callable[..., Any], float, dict[str, Any], Any] | None:
    """(metric, sign, keyword arguments, response method) of a scorer made by ``make_scorer``.

    None for any other scorer, and for a subclass, which may read the estimator.
    """
    if type(scorer) not in (_Scorer, _PreparingScorer):
        return None
    assert isinstance(scorer, _BaseScorer)
    return scorer._score_func, float(scorer._sign), dict(scorer._kwargs), scorer._response_method


def replace_metric(scorer: Any, metric: Callable[..., Any], prepare: Callable[[Any, str], Any]) -> Any:
    """A copy of a scorer made by ``make_scorer``, with another metric; metadata requests are kept.

    ``prepare(estimator, response_method)`` returns the estimator that predicts.
    """
    copied = copy.copy(scorer)
    copied.__class__, copied._score_func, copied._prepare = _PreparingScorer, metric, prepare
    return copied


class _PreparingScorer(_Scorer):
    """A scorer that has an estimator prepared for its predictions."""

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> Any:
        def call(estimator: Any, response_method: str, *args: Any, **options: Any) -> Any:
            return method_caller(self._prepare(estimator, response_method), response_method, *args, **options)

        return super()._score(call, estimator, X, y_true, **kwargs)


def map_scorers(scorer: Any, replace: Callable[[Any], Any]) -> Any:
    """A scorer, or a bundle of several, with ``replace(one)`` in place of each single scorer."""
    if not is_multimetric(scorer):
        return replace(scorer)
    replaced = {name: replace(one) for name, one in scorer._scorers.items()}
    return _MultimetricScorer(scorers=replaced, raise_exc=scorer._raise_exc)


def needs_estimator(scorer: Any) -> bool:
    """Whether a scorer may read the fitted estimator itself, and not only its predictions."""
    return any(
        not isinstance(one, PassthroughScorer) and scorer_parts(one) is None
        for one in scorers_by_name(scorer).values()
    )


def score_params_by_name(scorer: Any, params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Parameters that each scorer behind a scorer receives, by its name, as scikit-learn hands them out.

    Under metadata routing a scorer receives those it requested, else the weights if its metric takes them.
    """
    named = scorers_by_name(scorer)
    if not routing_enabled():
        return {name: params if one._accept_sample_weight() else {} for name, one in named.items()}
    if not is_multimetric(scorer):
        return dict.fromkeys(named, params)
    routed = process_routing(scorer, "score", **params)
    return {name: dict(routed[name].score) for name in named}


def raise_scorer_errors(scorer: Any, names: Iterable[str] | None = None) -> Any:
    """The same scorer, or those named of a bundle, that raises errors instead of returning their texts."""
    if not is_multimetric(scorer):
        return scorer
    named = scorer._scorers
    chosen = named if names is None else {name: named[name] for name in names}
    return _MultimetricScorer(scorers=chosen, raise_exc=True)


def check_metric_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise scikit-learn's own error for options that its metric function refuses."""
    constraints = getattr(function, "_skl_parameter_constraints", {})
    known = {name: value for name, value in options.items() if name in constraints}
    validate_parameter_constraints(constraints, known, caller_name=function.__name__)


@functools.cache
def log_loss_is_of_float64() -> bool:
    """Whether ``log_loss`` takes logarithms of float32 in float64, as older versions do."""
    P = np.array([[0.9, 0.1], [0.3, 0.7]], dtype=np.float32)
    return bool(sklearn.metrics.log_loss([0, 1], P) == sklearn.metrics.log_loss([0, 1], P.astype(np.float64)))
