"""scikit-learn's estimators for data on any device; and families, which answer many settings at once."""

from typing import TYPE_CHECKING

from manyfit.estimators import _drop_ins
from manyfit.estimators.backends import _native  # noqa: F401  (registers its fitters)
from manyfit.estimators.chunks.wrappers import Incremental, ParallelPostFit
from manyfit.families import (
    AffineStep,
    Answers,
    Cost,
    Family,
    FoldRows,
    GLMAnswers,
    Iterations,
    LinearAnswers,
    MomentSums,
    Predictions,
    Shape,
    affine_step_of,
    family_of,
    register_affine_step,
    register_family,
    unregister_family,
)

if TYPE_CHECKING:
    from manyfit.estimators._drop_ins import *  # noqa: F403
else:  # a type checker would take any name for one of the module
    from manyfit.introspection.late_names import late_names

    __getattr__, __dir__ = late_names(__name__, "_drop_ins")

__all__ = [
    "AffineStep",
    "Answers",
    "Cost",
    "Family",
    "FoldRows",
    "GLMAnswers",
    "Incremental",
    "Iterations",
    "LinearAnswers",
    "MomentSums",
    "ParallelPostFit",
    "Predictions",
    "Shape",
    "affine_step_of",
    "family_of",
    "register_affine_step",
    "register_family",
    "unregister_family",
]
__all__ += _drop_ins.__all__
