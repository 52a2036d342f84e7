"""Scorers, and the scores of all settings of a search."""

from manyfit.metrics.scoring._from_moments import (
    LinearPredictors,
    Residuals,
    Rounding,
    lost_predictions,
    lost_to_rounding,
    residuals_from_moments,
    scores_from_moments,
)
from manyfit.metrics.scoring._prediction_stub import PredictedClassifier, PredictedRegressor
from manyfit.metrics.scoring._scorers import (
    check_scoring,
    get_scorer,
    make_scorer,
    refuse_metrics,
    scores_on_host,
)
from manyfit.metrics.scoring._shared_scoring import SharedScoring
from manyfit.metrics.scoring._targets import ScoredTargets

__all__ = [
    "LinearPredictors",
    "PredictedClassifier",
    "PredictedRegressor",
    "Residuals",
    "Rounding",
    "ScoredTargets",
    "SharedScoring",
    "check_scoring",
    "get_scorer",
    "lost_predictions",
    "lost_to_rounding",
    "make_scorer",
    "refuse_metrics",
    "residuals_from_moments",
    "scores_from_moments",
    "scores_on_host",
]
