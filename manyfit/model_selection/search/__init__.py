"""The search classes."""

from manyfit.model_selection.job._option_values import Sharing, memory_limit_in_bytes
from manyfit.model_selection.search._base import SharedSearch

__all__ = ["SharedSearch", "Sharing", "memory_limit_in_bytes"]
