"""Transformers of which one fit serves several values of a parameter."""

from manyfit.model_selection.sharing.nested import (  # noqa: F401  (they register their rules)
    _clusters,
    _decompositions,
    _imputers,
    _paths,
    _selectors,
)
from manyfit.model_selection.sharing.nested._requests import NestedRequests
from manyfit.model_selection.sharing.nested._rule import nested_key, nested_params, nested_rule

__all__ = ["NestedRequests", "nested_key", "nested_params", "nested_rule"]
