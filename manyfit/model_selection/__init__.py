"""Searches and cross-validation whose fits share their work."""

from typing import TYPE_CHECKING, Any

import sklearn.model_selection

from manyfit.model_selection import _published
from manyfit.model_selection._plan import Group, Plan, WorkPlace
from manyfit.model_selection._published import *  # noqa: F403
from manyfit.model_selection._report import Report
from manyfit.model_selection._search import BaseSearchCV, GridSearchCV, RandomizedSearchCV

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
