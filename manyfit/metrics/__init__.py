"""Metrics and scorers for many settings in one call."""

from manyfit.metrics import _published, cluster, pairwise
from manyfit.metrics._published import *  # noqa: F403
from manyfit.metrics.scoring._from_moments import (
    LinearPredictors,
    Residuals,
    Rounding,
    lost_to_rounding,
    residuals_from_moments,
    scores_from_moments,
)
from manyfit.metrics.scoring._scorers import (
    check_scoring,
    get_scorer,
    get_scorer_names,
    make_scorer,
    refuse_metrics,
    scores_on_host,
)
from manyfit.metrics.scoring._shared_scoring import SharedScoring
from manyfit.metrics.scoring._targets import ScoredTargets

__all__ = [
    "LinearPredictors",
    "Residuals",
    "Rounding",
    "ScoredTargets",
    "SharedScoring",
    "check_scoring",
    "cluster",
    "get_scorer",
    "get_scorer_names",
    "lost_to_rounding",
    "make_scorer",
    "pairwise",
    "refuse_metrics",
    "residuals_from_moments",
    "scores_from_moments",
    "scores_on_host",
]
__all__ += _published.__all__
