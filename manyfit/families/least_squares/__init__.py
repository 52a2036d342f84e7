"""Families that are answered from moments."""

from manyfit.families.least_squares._ridge import LINEAR_REGRESSION, RIDGE

__all__ = ["LINEAR_REGRESSION", "RIDGE"]
