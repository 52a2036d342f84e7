"""The public names of `manyfit.model_selection`, which imports them when the first of them is read."""

from manyfit.model_selection._search import BaseSearchCV, GridSearchCV
from manyfit.model_selection.planning._plan import Group, Plan, WorkPlace
from manyfit.model_selection.results._choices import cheapest_within, one_standard_error
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results.displays._curve import SearchCurveDisplay
from manyfit.model_selection.results.displays._fold_scores import FoldScoresDisplay
from manyfit.model_selection.results.displays._heatmap import SearchHeatmapDisplay
from manyfit.model_selection.results.displays._parallel import SearchParallelDisplay
from manyfit.model_selection.results.displays._score_time import ScoreTimeDisplay
from manyfit.model_selection.results.displays._sharing import SharingDisplay
from manyfit.model_selection.search._randomized import RandomizedSearchCV
from manyfit.model_selection.search.adaptive._halving import HalvingGridSearchCV, HalvingRandomSearchCV
from manyfit.model_selection.search.adaptive._optuna import OptunaSearchCV
from manyfit.model_selection.search.adaptive.incremental._hyperband import HyperbandSearchCV
from manyfit.model_selection.search.adaptive.incremental._incremental import (
    IncrementalSearchCV,
    SuccessiveHalvingSearchCV,
)
from manyfit.model_selection.validation import _published
from manyfit.model_selection.validation._published import *  # noqa: F403

__all__: list[str] = [
    "BaseSearchCV",
    "FoldScoresDisplay",
    "GridSearchCV",
    "Group",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    "HyperbandSearchCV",
    "IncrementalSearchCV",
    "OptunaSearchCV",
    "Plan",
    "RandomizedSearchCV",
    "Report",
    "ScoreTimeDisplay",
    "SearchCurveDisplay",
    "SearchHeatmapDisplay",
    "SearchParallelDisplay",
    "SharingDisplay",
    "SuccessiveHalvingSearchCV",
    "WorkPlace",
    "cheapest_within",
    "one_standard_error",
]
__all__ += _published.__all__
