"""Metrics and scorers for many settings in one call."""

from manyfit.metrics._batched import Truth
from manyfit.metrics._moment_scores import (
    LinearPredictors,
    Residuals,
    Rounding,
    lost_to_rounding,
    residuals_from_moments,
    scores_from_moments,
)
from manyfit.metrics._scoring import SharedScoring

__all__ = [
    "LinearPredictors",
    "Residuals",
    "Rounding",
    "SharedScoring",
    "Truth",
    "lost_to_rounding",
    "residuals_from_moments",
    "scores_from_moments",
]
