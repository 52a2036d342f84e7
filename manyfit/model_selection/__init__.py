"""Searches and cross-validation whose fits share their work."""

from typing import TYPE_CHECKING, Any

import sklearn.model_selection

from manyfit.model_selection._search import BaseSearchCV, GridSearchCV, RandomizedSearchCV
from manyfit.model_selection.planning._plan import Group, Plan, WorkPlace
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.validation import _published
from manyfit.model_selection.validation._published import *  # noqa: F403

__all__ = [
    "BaseSearchCV",
    "GridSearchCV",
    "Group",
    "Plan",
    "RandomizedSearchCV",
    "Report",
    "WorkPlace",
]
__all__ += _published.__all__

if not TYPE_CHECKING:  # a type checker would take any name for one of the module

    def __getattr__(name: str) -> Any:
        """scikit-learn's experimental searches; before they are enabled, its ImportError that says how."""
        if name in _published.EXPERIMENTAL:
            return getattr(sklearn.model_selection, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
