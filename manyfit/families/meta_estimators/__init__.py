"""Meta-estimators of one estimator, whose family answers for them: other targets, or one for each class."""

from manyfit.families.meta_estimators import (  # noqa: F401  (they register themselves)
    _multi_output,
    _one_vs_rest,
    _transformed_target,
)
from manyfit.families.meta_estimators._wrapped import (
    TargetFunction,
    WrappedFamily,
    family_in,
    inner_estimator,
    is_of_manyfit,
    target_function,
    wrapper_of,
)

__all__ = [
    "TargetFunction",
    "WrappedFamily",
    "family_in",
    "inner_estimator",
    "is_of_manyfit",
    "target_function",
    "wrapper_of",
]
