"""Metrics and scorers for many settings in one call."""

from manyfit.metrics._moment_scores import (
    LinearPredictors,
    Rounding,
    lost_to_rounding,
    scores_from_moments,
)
from manyfit.metrics._scoring import SharedScoring

__all__ = ["LinearPredictors", "Rounding", "SharedScoring", "lost_to_rounding", "scores_from_moments"]
