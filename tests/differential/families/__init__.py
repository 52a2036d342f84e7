"""The registered families, one module for those that belong together."""

from . import least_squares, one_by_one

__all__ = ["least_squares", "one_by_one"]
