"""Metrics and scorers for many settings in one call."""

from manyfit.metrics._moment_scores import LinearPredictors, residual_mean_squares, scores_from_moments
from manyfit.metrics._scoring import SharedScoring

__all__ = ["LinearPredictors", "SharedScoring", "residual_mean_squares", "scores_from_moments"]
