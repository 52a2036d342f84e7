"""Steps that encode columns: what each learns from the training rows is a linear map of the global matrix."""

from manyfit.families.columns import (  # noqa: F401
    _bins,
    _composites,
    _encoders,
    _functions,
    _imputer,
    _made,
    _scalers,
)
from manyfit.families.columns._functions import ELEMENTWISE

__all__ = ["ELEMENTWISE"]
