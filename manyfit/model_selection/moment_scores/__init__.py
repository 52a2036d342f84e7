"""Scores of one estimator on many sets of columns, or for many targets, from one pass over the rows."""

from manyfit.model_selection.moment_scores._columns import ColumnScores, draw_fixed_splits

__all__ = ["ColumnScores", "draw_fixed_splits"]
