"""Which scorers can read predictions of many settings, and how they are applied."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

from manyfit._compat import (
    PassthroughScorer,
    is_multimetric,
    needs_estimator,
    negative_likelihood_ratio,
    positive_likelihood_ratio,
    score_params_by_name,
    scorer_parts,
    scorers_by_name,
)
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.arrays import array_namespace
from manyfit.folds import Fold, Unsupported
from manyfit.metrics.functions._registry import MANY
from manyfit.metrics.scoring._from_moments import MOMENT_METRICS, Residuals, scores_from_moments
from manyfit.metrics.scoring._from_predictions import batched_many, scores_there
from manyfit.metrics.scoring._numpy_classification import CLASS_METRICS
from manyfit.metrics.scoring._numpy_regression import NUMBER_METRICS
from manyfit.metrics.scoring._prediction_stub import (
    PredictedClassifier,
    PredictedRegressor,
    PredictedWithOwnScore,
)
from manyfit.metrics.scoring._scorers import scikit_learns
from manyfit.metrics.scoring._targets import ScoredTargets, SearchMetric
from manyfit.metrics.scoring.glm_score import deviance_explained, explained_power

Array = NDArray[Any]

# Of each scikit-learn's scorer warns where the other is not defined, too; it gives 1 then.
TOGETHER = {
    positive_likelihood_ratio: negative_likelihood_ratio,
    negative_likelihood_ratio: positive_likelihood_ratio,
}
BATCHED: dict[Callable[..., Any], SearchMetric] = {**CLASS_METRICS, **NUMBER_METRICS}


@dataclass(frozen=True)
class _Metric:
    """What is known of a scorer.

    Attributes
    ----------
    sign : float
        What scikit-learn multiplies the metric by.
    of_moments : callable or None
        Its metric where moments may give it: a key of `MOMENT_METRICS`.
    batched : Batched or None
        Its metric of many settings at once; None where scikit-learn's is called for each.
    there : Batched or None
        The same for predictions on a device, see `scores_there`.
    """

    sign: float = 1.0
    of_moments: Callable[..., Any] | None = None
    batched: SearchMetric | None = None
    there: SearchMetric | None = None


class SharedScoring:
    """The scorers of a search, applied to the answers of many settings at once.

    Parameters
    ----------
    scorer : callable
        What a scikit-learn search uses: one scorer, or its multimetric bundle.
    params : dict
        Arguments of the scorer: its weights or nothing.
    estimator : estimator
        What is scored, behind all steps, unfitted: where no scorer is given, its ``score`` is the one.

    Attributes
    ----------
    weights : array-like or None
        What every scorer is given as its ``sample_weight``. The ``score`` of a pipeline may take the weights
        under another name, by metadata routing: the planner checks that they reach the last step.

    Raises
    ------
    Unsupported
        If a scorer needs the fitted estimator itself, or only some of them are given the weights.
    """

    def __init__(self, scorer: Any, params: Mapping[str, Any], estimator: Any) -> None:
        self.scorer = scorer
        self.named = scorers_by_name(scorer)
        for name, one in self.named.items():
            if needs_estimator(one):
                raise Unsupported(f"the scorer {name!r} is a callable that may read the fitted estimator")
        self.by_itself = any(isinstance(one, PassthroughScorer) for one in self.named.values())
        self._metrics = {name: _metric(one, estimator) for name, one in self.named.items()}
        self._own_score = self.by_itself and _score_of(estimator) not in INHERITED
        self._weights_name, self.weights = self._find_weights(params)

    def _find_weights(self, params: Mapping[str, Any]) -> tuple[str, Any]:
        """The name by which the scorer is to be given its weights, and these."""
        if not params:
            return "sample_weight", None
        name, *others = params
        of_each = list(score_params_by_name(self.scorer, dict(params)).values())
        if self.multimetric or not self.by_itself:
            others += [own for one in of_each for own in one if own != "sample_weight"]
        if others:
            raise Unsupported(f"the scorer takes {sorted(params)}")
        if not all(of_each):
            raise Unsupported("not every scorer is given the sample_weight")
        return name if self.multimetric else "sample_weight", params[name]

    def from_moments(self, residuals: Residuals) -> dict[str, Array] | None:
        """Scores of shape (m,) by name, NaN where unknown; None if a scorer needs predictions."""
        if not self.reads_moments:
            return None
        return {
            name: metric.sign * scores_from_moments(metric.of_moments, residuals)
            for name, metric in self._metrics.items()
            if metric.of_moments is not None
        }

    def from_responses(self, responses: Mapping[str, Array], truth: ScoredTargets) -> dict[str, Array]:
        """Scores of many settings from what they predict, as far as they are known without a scorer.

        Parameters
        ----------
        responses : dict of str to ndarray of shape (m, n) or (m, n, n_classes)
            What each method returns for m settings; on the host.
        truth : Truth
            Of the n rows.

        Returns
        -------
        dict of str to ndarray of shape (m,)
            Signs included, by the names of the scorers whose metrics are batched. NaN where the scorer
            itself has to be asked, since it might warn, raise or see something else in these values.
        """
        scores = {}
        for name, metric in self._metrics.items():
            methods = () if metric.batched is None else metric.batched.methods
            read = next((method for method in methods if method in responses), None)
            if metric.batched is not None and read is not None:
                scores[name] = metric.sign * metric.batched(truth, responses[read])
        return scores

    def from_responses_there(self, responses: Mapping[str, Any], truth: ScoredTargets) -> Any:
        """Scores of many settings from what they predict on a device; all scorers have to be known there.

        Parameters
        ----------
        responses : dict of str to array of shape (m, n) or (m, n, n_classes)
            What each method returns for m settings, not NumPy's; ``predict`` of classifiers gives codes of
            labels.
        truth : Truth
            Of the n rows; on the host.

        Returns
        -------
        array of shape (n_scorers, m)
            There, signs included, in the order of the scorers. NaN as in `from_responses`.
        """
        scores = []
        for metric in self._metrics.values():
            assert metric.there is not None
            read = next(responses[method] for method in metric.there.methods if method in responses)
            scores.append(metric.sign * scores_there(metric.there, truth, read))
        return array_namespace(scores[0]).stack(scores)

    def known_there(self, methods: Collection[str]) -> bool:
        """Whether every scorer can be had on a device, from what some methods return."""
        batched = [metric.there for metric in self._metrics.values()]
        return all(one is not None and not set(one.methods).isdisjoint(methods) for one in batched)

    @property
    def multimetric(self) -> bool:
        """Whether scores come as a dict by name."""
        return is_multimetric(self.scorer)

    @property
    def reads_moments(self) -> bool:
        """Whether moments can give every score."""
        return all(metric.of_moments is not None for metric in self._metrics.values())

    @property
    def calls_scorers(self) -> bool:
        """Whether some scorer is called for each setting, whatever the data."""
        return not self.reads_moments and any(metric.batched is None for metric in self._metrics.values())

    @property
    def label_scorers(self) -> frozenset[str]:
        """The scorers that read what ``predict`` returns, or may do so."""
        found = {name: scorer_parts(one) for name, one in self.named.items()}
        return frozenset(name for name, one in found.items() if one is None or one[3] == "predict")

    @property
    def accuracies(self) -> frozenset[str]:
        """The label scorers that are means over all rows."""
        found = {name: scorer_parts(one) for name, one in self.named.items()}
        return frozenset(
            name
            for name, one in found.items()
            if isinstance(self.named[name], PassthroughScorer)
            or (one is not None and one[0] is accuracy_score)
        )

    def params_of(self, fold: Fold, role: str) -> dict[str, Any]:
        """The arguments of the scorer for the rows of a role."""
        weight = fold.score_weight(role)
        return {} if weight is None else {self._weights_name: weight}

    def stub(self, responses: dict[str, Array], classes: Array | None) -> Any:
        """A stand-in estimator for one setting, to be handed to the scorer itself."""
        if self._own_score:
            return PredictedWithOwnScore(responses)
        return PredictedRegressor(responses) if classes is None else PredictedClassifier(responses, classes)


def _of_predictions(function: Callable[..., Any], **options: Any) -> SearchMetric | None:
    return batched_many(function, MANY[function], options, ("predict",))


# Scores that are scikit-learn's metrics.
INHERITED = {
    RegressorMixin.score: _Metric(1.0, r2_score, BATCHED[r2_score], _of_predictions(r2_score)),
    ClassifierMixin.score: _Metric(1.0, None, BATCHED[accuracy_score], _of_predictions(accuracy_score)),
}


def _score_of(estimator: Any) -> Any:
    return getattr(sklearn_class_of(type(estimator)), "score", None)


def _metric(scorer: Any, estimator: Any) -> _Metric:
    """What is known of a scorer.

    Raises
    ------
    Unsupported
        If it is the score of an estimator, and that is not a function of its predictions that we know.
    """
    if isinstance(scorer, PassthroughScorer):
        return _default(estimator)
    found = scorer_parts(scorer)
    if found is None:
        return _Metric()
    function, sign, kwargs, response = found
    function = scikit_learns(function)
    methods = (response,) if isinstance(response, str) else tuple(response)
    batched, many = None if kwargs else BATCHED.get(function), MANY.get(function)
    if batched is not None and batched.methods != methods:
        batched = None
    there = None
    if many is not None:
        other = MANY[TOGETHER[function]] if function in TOGETHER else None
        there = batched_many(function, many, kwargs, methods, other)
    batched = there if batched is None else batched
    moments = function in MOMENT_METRICS and methods == ("predict",) and not kwargs
    return _Metric(sign, function if moments else None, batched, there)


def _default(estimator: Any) -> _Metric:
    """The metric that an estimator's own ``score`` is."""
    if _score_of(estimator) in INHERITED:
        return INHERITED[_score_of(estimator)]
    power = explained_power(estimator)
    if power is None:
        raise Unsupported(f"{type(estimator).__name__} has a score method of its own")
    return _Metric(1.0, None, deviance_explained(estimator), _of_predictions(d2_tweedie_score, power=power))
