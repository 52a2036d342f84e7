"""Which scorers can read predictions of many settings, and how they are applied."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score

from manyfit._compat import (
    PassthroughScorer,
    is_multimetric,
    needs_estimator,
    plain_scorer,
    score_params_by_name,
    scorers_by_name,
)
from manyfit.folds import Fold, Unsupported
from manyfit.metrics._moment_scores import MOMENT_METRICS, Residuals, scores_from_moments
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
    estimator : type
        What is scored, behind all steps: where no scorer is given, its ``score`` is the one.

    Raises
    ------
    Unsupported
        If a scorer needs the fitted estimator itself, or only some of them are given the weights.
    """

    def __init__(self, scorer: Any, params: Mapping[str, Any], estimator: type) -> None:
        self.scorer = scorer
        self.named = scorers_by_name(scorer)
        for name, one in self.named.items():
            if needs_estimator(one):
                raise Unsupported(f"the scorer {name!r} is a callable that may read the fitted estimator")
        if any(isinstance(one, PassthroughScorer) for one in self.named.values()):
            _require_plain_score(estimator)
        if set(params) - {"sample_weight"}:
            raise Unsupported(f"the scorer takes {sorted(params)}")
        if params and not all(score_params_by_name(scorer, dict(params)).values()):
            raise Unsupported("not every scorer is given the sample_weight")

    def from_moments(self, residuals: Residuals) -> dict[str, Array] | None:
        """Scores of shape (m,) by name, NaN where unknown; None if a scorer needs predictions."""
        metrics = {name: _metric(one) for name, one in self.named.items()}
        if any(metric is None for metric, _ in metrics.values()):
            return None
        return {
            name: sign * scores_from_moments(metric, residuals)
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


def _require_plain_score(estimator: type) -> None:
    own = getattr(estimator, "score", None)
    if own not in (RegressorMixin.score, ClassifierMixin.score):
        raise Unsupported(f"{estimator.__name__} has a score method of its own")


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
