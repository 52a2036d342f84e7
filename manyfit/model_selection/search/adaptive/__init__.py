"""Searches whose scores decide which settings they go on with."""

from manyfit.model_selection.search.adaptive._halving import HalvingSearch

__all__ = ["HalvingSearch"]
