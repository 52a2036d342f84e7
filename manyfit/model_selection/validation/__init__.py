"""cross_validate and related functions."""

from manyfit.model_selection.validation._cross_validate import EngineParallel

__all__ = ["EngineParallel"]
