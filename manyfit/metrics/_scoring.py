"""Which scorers can read predictions of many settings, and how they are applied."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from sklearn.metrics import r2_score

from manyfit._compat import PassthroughScorer, is_multimetric, plain_scorer, scorers_by_name
from manyfit.folds import Fold, Moments, Unsupported
from manyfit.metrics._moment_scores import MOMENT_METRICS, LinearPredictors, scores_from_moments
from manyfit.metrics._predicted import PredictedClassifier, PredictedRegressor

Array = NDArray[Any]


class SharedScoring:
    """The scorers of a search, applied to the answers of many settings at once.

    Parameters
    ----------
    scorer : callable
        What a scikit-learn search uses: one scorer, or its multimetric bundle.
    params : dict
        Arguments of the scorer, ``sample_weight`` or nothing.

    Raises
    ------
    Unsupported
        If a scorer needs the fitted estimator itself.
    """

    def __init__(self, scorer: Any, params: Mapping[str, Any]) -> None:
        self.scorer = scorer
        self.named = scorers_by_name(scorer)
        for name, one in self.named.items():
            if not isinstance(one, PassthroughScorer) and plain_scorer(one) is None:
                raise Unsupported(f"the scorer {name!r} is a callable that may read the fitted estimator")
        if set(params) - {"sample_weight"}:
            raise Unsupported(f"the scorer takes {sorted(params)}")
        # Weights go to the scorers that take them, as scikit-learn routes them.
        weighted = [one for one in self.named.values() if _takes_weights(one)]
        if params and len(weighted) < len(self.named):
            raise Unsupported("some of the scorers take sample_weight and some do not")

    def from_moments(self, linear: LinearPredictors, moments: Moments) -> dict[str, Array] | None:
        """Scores of shape (m,) by name, NaN where unknown; None if a scorer needs predictions."""
        metrics = {name: _metric(one) for name, one in self.named.items()}
        if any(metric is None for metric, _ in metrics.values()):
            return None
        return {
            name: sign * scores_from_moments(metric, linear, moments)
            for name, (metric, sign) in metrics.items()
            if metric is not None
        }

    @property
    def multimetric(self) -> bool:
        """Whether scores come as a dict by name."""
        return is_multimetric(self.scorer)

    @property
    def reads_moments(self) -> bool:
        """Whether moments can give every score."""
        return all(_metric(one)[0] is not None for one in self.named.values())

    def params_of(self, fold: Fold, role: str) -> dict[str, Any]:
        """The arguments of the scorer for the rows of a role."""
        weight = fold.score_weight(role)
        return {} if weight is None else {"sample_weight": weight}

    def stub(self, responses: dict[str, Array], classes: Array | None) -> Any:
        """A stand-in estimator for one setting, to be handed to the scorer itself."""
        return PredictedRegressor(responses) if classes is None else PredictedClassifier(responses, classes)


def _takes_weights(scorer: Any) -> bool:
    accepts = getattr(scorer, "_accept_sample_weight", None)
    return accepts is None or accepts()


def _metric(scorer: Any) -> tuple[Any, float]:
    """The moment metric and sign behind a scorer, or (None, 1)."""
    if isinstance(scorer, PassthroughScorer):
        return r2_score, 1.0
    found = plain_scorer(scorer)
    if found is None:
        return None, 1.0
    function, sign, kwargs, response = found
    plain = function in MOMENT_METRICS and not kwargs and response == "predict"
    return (function, sign) if plain else (None, 1.0)
