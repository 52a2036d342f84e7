"""Scores of one estimator on many sets of columns, or for many targets, from one pass over the rows."""

from manyfit.model_selection.validation.moment_scores._columns import ColumnScores, draw_fixed_splits
from manyfit.model_selection.validation.moment_scores._folds import NEAR
from manyfit.model_selection.validation.moment_scores._targets import TargetScores

__all__ = ["NEAR", "ColumnScores", "TargetScores", "draw_fixed_splits"]
