"""Metrics and scorers for many settings in one call."""

from manyfit.metrics import pairwise
from manyfit.metrics._batched import Truth
from manyfit.metrics._functions import FUNCTIONS
from manyfit.metrics._moment_scores import (
    LinearPredictors,
    Residuals,
    Rounding,
    lost_to_rounding,
    residuals_from_moments,
    scores_from_moments,
)
from manyfit.metrics._scorers import (
    check_scoring,
    get_scorer,
    get_scorer_names,
    make_scorer,
    refuse_metrics,
    scores_at_home,
)
from manyfit.metrics._scoring import SharedScoring

# Which functions there are is for the installed scikit-learn to say.
globals().update(FUNCTIONS)

__all__ = [
    "LinearPredictors",
    "Residuals",
    "Rounding",
    "SharedScoring",
    "Truth",
    "check_scoring",
    "get_scorer",
    "get_scorer_names",
    "lost_to_rounding",
    "make_scorer",
    "pairwise",
    "refuse_metrics",
    "residuals_from_moments",
    "scores_at_home",
    "scores_from_moments",
    *FUNCTIONS,
]
