"""Metrics and scorers for many settings in one call."""

from sklearn.metrics import get_scorer_names

from manyfit.metrics import _published, cluster, pairwise
from manyfit.metrics._published import *  # noqa: F403

# For manyfit's other rooms, hence not in `__all__`.
from manyfit.metrics.scoring._from_moments import LinearPredictors as LinearPredictors
from manyfit.metrics.scoring._from_moments import Residuals as Residuals
from manyfit.metrics.scoring._from_moments import Rounding as Rounding
from manyfit.metrics.scoring._from_moments import lost_predictions as lost_predictions
from manyfit.metrics.scoring._from_moments import lost_to_rounding as lost_to_rounding
from manyfit.metrics.scoring._from_moments import residuals_from_moments as residuals_from_moments
from manyfit.metrics.scoring._from_moments import scores_from_moments as scores_from_moments
from manyfit.metrics.scoring._prediction_stub import PredictedClassifier as PredictedClassifier
from manyfit.metrics.scoring._prediction_stub import PredictedRegressor as PredictedRegressor
from manyfit.metrics.scoring._scorers import check_scoring, get_scorer, make_scorer
from manyfit.metrics.scoring._scorers import refuse_metrics as refuse_metrics
from manyfit.metrics.scoring._scorers import scores_on_host as scores_on_host
from manyfit.metrics.scoring._shared_scoring import SharedScoring as SharedScoring
from manyfit.metrics.scoring._targets import ScoredTargets as ScoredTargets

__all__ = ["check_scoring", "cluster", "get_scorer", "get_scorer_names", "make_scorer", "pairwise"]
__all__ += _published.__all__
