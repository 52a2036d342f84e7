"""The scorers of a search, applied to what many settings predict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from sklearn.base import OutlierMixin
from sklearn.metrics import accuracy_score, explained_variance_score

from manyfit._compat import (
    PassthroughScorer,
    is_multimetric,
    metric_of_score,
    needs_estimator,
    negative_likelihood_ratio,
    positive_likelihood_ratio,
    score_params_by_name,
    scorer_parts,
    scorers_by_name,
)
from manyfit.arrays import array_namespace
from manyfit.folds import Array, Fold, Unsupported
from manyfit.introspection.class_names import public_name, sklearn_class_of
from manyfit.metrics.scoring._from_moments import (
    MOMENT_METRICS,
    RESIDUAL_METRICS,
    Residuals,
    scores_from_moments,
    scores_from_residuals,
)
from manyfit.metrics.scoring._prediction_stub import (
    PredictedClassifier,
    PredictedOutlierDetector,
    PredictedRegressor,
    PredictedWithOwnScore,
)
from manyfit.metrics.scoring._scorers import sklearn_metric_of
from manyfit.metrics.scoring._targets import ScoredTargets

if TYPE_CHECKING:
    from manyfit.metrics.scoring._search_metric import SearchMetric

# scikit-learn's scorer of one ratio also warns, and returns 1, if the other is not defined.
LIKELIHOOD_RATIOS = {
    positive_likelihood_ratio: negative_likelihood_ratio,
    negative_likelihood_ratio: positive_likelihood_ratio,
}

_ELIMINATION = "sklearn.feature_selection.RFE"


@dataclass(frozen=True)
class _Metric:
    """A scorer's sign, its metric if that reads predictions without options, and that for many settings."""

    sign: float = 1.0
    plain: Any = None
    make_search_metric: Callable[[], SearchMetric | None] | None = None

    @cached_property
    def search_metric(self) -> SearchMetric | None:
        """The metric for many settings; moments and residuals do without, and without what it imports."""
        return None if self.make_search_metric is None else self.make_search_metric()


class SharedScoring:
    """The scorers of a search, one or a multimetric bundle, for the answers of many settings at once.

    `params` are the scorer's arguments: its weights, which become `weights`, or nothing. `estimator` is the
    unfitted last step, whose ``score`` counts if there is no scorer. Raises Unsupported if a scorer needs the
    fitted estimator, or if not all of them take the weights.
    """

    def __init__(self, scorer: Any, params: Mapping[str, Any], estimator: Any) -> None:
        self.scorer = scorer
        self.named = scorers_by_name(scorer)
        for name, one in self.named.items():
            if needs_estimator(one):
                raise Unsupported(
                    f"the scorer {name!r} is a callable that may read the fitted estimator; one of "
                    "make_scorer reads predictions only"
                )
        self.by_itself = any(isinstance(one, PassthroughScorer) for one in self.named.values())
        self._parts = {name: scorer_parts(one) for name, one in self.named.items()}
        self._metrics = {name: _metric(one, self._parts[name], estimator) for name, one in self.named.items()}
        self._own_score = self.by_itself and _own_metric(estimator) is None
        self._finds_outliers = isinstance(estimator, OutlierMixin)
        self._weights_name, self.weights = self._find_weights(params)

    def _find_weights(self, params: Mapping[str, Any]) -> tuple[str, Any]:
        """The name under which the scorer takes its weights, and the weights."""
        if not params:
            return "sample_weight", None
        name, *others = params
        params_by_scorer = list(score_params_by_name(self.scorer, dict(params)).values())
        if self.multimetric or not self.by_itself:
            others += [own for one in params_by_scorer for own in one if own != "sample_weight"]
        if others:
            raise Unsupported(f"the scorer takes {sorted(params)}")
        if not all(params_by_scorer):
            raise Unsupported("not every scorer is given the sample_weight")
        return name if self.multimetric else "sample_weight", params[name]

    def from_moments(self, residuals: Residuals) -> dict[str, Array] | None:
        """Scores of shape (m,) by name, NaN where unknown; None if a scorer needs predictions."""
        if not self.reads_moments:
            return None
        metrics = self._metrics.items()
        return {name: one.sign * scores_from_moments(one.plain, residuals) for name, one in metrics}

    @property
    def reads_squares(self) -> bool:
        """Whether `from_residuals` reads nothing but sums of squares of residuals."""
        return self.reads_moments and all(
            metric.plain is not explained_variance_score for metric in self._metrics.values()
        )

    def from_residuals(self, residuals: Array, targets: Array) -> dict[str, Array] | None:
        """Scores of shape (k, s) by name, NaN where unknown; see `scores_from_residuals`.

        None if the scorers have weights, or if one of them needs more than residuals.
        """
        metrics = self._metrics.items()
        if self.weights is not None or any(one.plain not in RESIDUAL_METRICS for _, one in metrics):
            return None
        return {
            name: one.sign * scores_from_residuals(one.plain, residuals, targets) for name, one in metrics
        }

    def from_responses(self, responses: Mapping[str, Any], truth: ScoredTargets) -> dict[str, Array]:
        """Scores of shape (m,), with their signs, by the names of the scorers that read one of the responses.

        Responses by method are (m, n) or (m, n, n_classes); on a device ``predict`` gives codes of labels.
        Scores lie where they do. NaN: call the scorer itself, since it might warn, raise or differ.
        """
        scores = {}
        for name, metric in self._metrics.items():
            shared = metric.search_metric
            if shared is not None and not set(shared.methods).isdisjoint(responses):
                read = next(method for method in shared.methods if method in responses)
                scores[name] = metric.sign * shared(truth, responses[read])
        return scores

    def device_scores(self, responses: Mapping[str, Any], truth: ScoredTargets) -> Any:
        """Scores of all scorers, (n_scorers, m), on the device of the responses; see `gives_all_scores`."""
        scores = list(self.from_responses(responses, truth).values())
        return array_namespace(scores[0]).stack(scores)

    def gives_all_scores(self, methods: Collection[str]) -> bool:
        """Whether responses of some methods give all scores."""
        metrics = [metric.search_metric for metric in self._metrics.values()]
        return all(one is not None and not set(one.methods).isdisjoint(methods) for one in metrics)

    @property
    def multimetric(self) -> bool:
        """Whether scores come as a dict by name."""
        return is_multimetric(self.scorer)

    @property
    def reads_moments(self) -> bool:
        """Whether moments can give every score."""
        return all(metric.plain in MOMENT_METRICS for metric in self._metrics.values())

    @property
    def calls_scorers(self) -> bool:
        """Whether some scorer is called for each setting, whatever the data."""
        return not self.reads_moments and any(
            metric.search_metric is None for metric in self._metrics.values()
        )

    @property
    def label_scorers(self) -> frozenset[str]:
        """The scorers that read what ``predict`` returns, or may do so."""
        parts = self._parts.items()
        return frozenset(name for name, one in parts if one is None or "predict" in _methods(one[3]))

    @property
    def accuracies(self) -> frozenset[str]:
        """The label scorers that are means over all rows."""
        return frozenset(
            name
            for name, one in self._parts.items()
            if isinstance(self.named[name], PassthroughScorer) or (one and one[0] is accuracy_score)
        )

    @property
    def explains_variance(self) -> bool:
        """Whether a scorer is explained variance."""
        return any(one and one[0] is explained_variance_score for one in self._parts.values())

    def params_of(self, fold: Fold, role: str) -> dict[str, Any]:
        """The arguments of the scorer for the rows of a role."""
        weight = fold.score_weight(role)
        return {} if weight is None else {self._weights_name: weight}

    def stub(self, responses: dict[str, Array], classes: Array | None) -> Any:
        """A stand-in estimator for one setting, to be handed to the scorer itself."""
        if self._own_score:
            return PredictedWithOwnScore(responses)
        if self._finds_outliers:
            return PredictedOutlierDetector(responses)
        return PredictedRegressor(responses) if classes is None else PredictedClassifier(responses, classes)


def _scored(estimator: Any) -> Any:
    """The estimator whose ``score`` is called in the end: RFE calls that of its own estimator."""
    return _scored(estimator.estimator) if public_name(type(estimator)) == _ELIMINATION else estimator


def _metric(scorer: Any, parts: Any, estimator: Any) -> _Metric:
    """The metric of a scorer; Unsupported for an estimator's own score of more than predictions."""
    if isinstance(scorer, PassthroughScorer):
        return _own_score(estimator)
    if parts is None:
        return _Metric()
    function, sign, options, response = parts
    return _metric_of(sklearn_metric_of(function), _methods(response), sign, options)


def _methods(response: str | Sequence[str]) -> Sequence[str]:
    """The methods of a scorer's `response_method`, which may be the name of one."""
    return (response,) if isinstance(response, str) else response


def _metric_of(
    function: Callable[..., Any],
    methods: Sequence[str],
    sign: float = 1.0,
    options: Mapping[str, Any] | None = None,
) -> _Metric:
    shared = partial(_search_metric_of, function, tuple(methods), options or {})
    plain = tuple(methods) == ("predict",) and not options
    return _Metric(sign, function if plain else None, shared)


def _search_metric_of(
    function: Callable[..., Any], methods: tuple[str, ...], options: Mapping[str, Any]
) -> SearchMetric | None:
    from manyfit.metrics.functions._registry import METRIC_KERNELS
    from manyfit.metrics.scoring._search_metric import search_metric

    kernel = METRIC_KERNELS.get(function)
    if kernel is None:
        return None
    other = METRIC_KERNELS[LIKELIHOOD_RATIOS[function]] if function in LIKELIHOOD_RATIOS else None
    return search_metric(function, kernel, options, methods, other)


def _own_metric(estimator: Any) -> _Metric | None:
    """The metric that an estimator's own ``score`` is, if it is that of many estimators."""
    metric = metric_of_score(sklearn_class_of(type(_scored(estimator))))
    return None if metric is None else _metric_of(metric, ("predict",))


def _own_score(estimator: Any) -> _Metric:
    """The metric that an estimator's own ``score`` is."""
    known = _own_metric(estimator)
    if known is not None:
        return known
    from manyfit.metrics.scoring.glm_score import deviance_explained, explained_power

    estimator = _scored(estimator)
    power = explained_power(estimator)
    if power is None:
        raise Unsupported(f"{type(estimator).__name__} has a score method of its own")
    return _Metric(make_search_metric=partial(deviance_explained, power))
