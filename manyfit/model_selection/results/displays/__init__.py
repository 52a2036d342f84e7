"""Pictures of a search, in the form of scikit-learn's displays."""

from manyfit.model_selection.results.displays._curve import SearchCurveDisplay
from manyfit.model_selection.results.displays._fold_scores import FoldScoresDisplay
from manyfit.model_selection.results.displays._heatmap import SearchHeatmapDisplay
from manyfit.model_selection.results.displays._parallel import SearchParallelDisplay
from manyfit.model_selection.results.displays._score_time import ScoreTimeDisplay
from manyfit.model_selection.results.displays._sharing import SharingDisplay

__all__ = [
    "FoldScoresDisplay",
    "ScoreTimeDisplay",
    "SearchCurveDisplay",
    "SearchHeatmapDisplay",
    "SearchParallelDisplay",
    "SharingDisplay",
]
