"""Families that are answered from moments."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyfit.families.least_squares._ridge import LINEAR_REGRESSION, RIDGE
else:
    from manyfit.introspection.late_names import late_names

    __getattr__, __dir__ = late_names(__name__, "_ridge")

__all__ = ["LINEAR_REGRESSION", "RIDGE"]
