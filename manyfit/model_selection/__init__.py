"""Searches and cross-validation whose fits share their work."""

from manyfit.folds import SPLITTERS, train_test_split
from manyfit.model_selection._move import Move
from manyfit.model_selection._plan import Group, Plan
from manyfit.model_selection._report import Report
from manyfit.model_selection._search import BaseSearchCV, GridSearchCV, RandomizedSearchCV
from manyfit.model_selection._validation import (
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)

# The splitters: KFold and so on.
globals().update(SPLITTERS)

__all__ = [
    "BaseSearchCV",
    "GridSearchCV",
    "Group",
    "Move",
    "Plan",
    "RandomizedSearchCV",
    "Report",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "learning_curve",
    "train_test_split",
    "validation_curve",
    *SPLITTERS,
]
