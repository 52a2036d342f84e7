"""Transformers of which one fit serves several values of a parameter."""

from manyfit.model_selection.sharing.nested._requests import NestedRequests
from manyfit.model_selection.sharing.nested._rule import nested_key, nested_rule

__all__ = ["NestedRequests", "nested_key", "nested_rule"]
