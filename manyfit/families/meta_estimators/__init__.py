"""Meta-estimators of one estimator, whose family answers for them: other targets, or one for each class."""

from manyfit.families.meta_estimators import (  # noqa: F401  (they register themselves)
    _multi_output,
    _one_vs_rest,
    _transformed_target,
)
