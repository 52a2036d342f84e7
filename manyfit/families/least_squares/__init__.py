"""Families that are answered from moments."""

from manyfit.families.least_squares import (  # noqa: F401  (they register themselves)
    _bayesian_ridge,
    _coordinate_descent,
    _least_angle,
    _matching_pursuit,
    _partial_least_squares,
    _relevance,
    _ridge_classifier,
)
from manyfit.families.least_squares._ridge import LINEAR_REGRESSION, RIDGE

__all__ = ["LINEAR_REGRESSION", "RIDGE"]
