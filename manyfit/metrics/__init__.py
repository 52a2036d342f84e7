"""Metrics and scorers for many settings in one call."""

from manyfit.metrics._moment_scores import LinearPredictors, scores_from_moments
from manyfit.metrics._scoring import SharedScoring

__all__ = ["LinearPredictors", "SharedScoring", "scores_from_moments"]
