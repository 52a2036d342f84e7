"""Families: each answers many settings of one estimator at once."""

from manyfit.families import _affine_steps, least_squares, smooth  # noqa: F401  (they register themselves)
from manyfit.families._answer_checks import require_valid_answers
from manyfit.families._answers import Answers, LinearAnswers, Predictions
from manyfit.families._parameter_values import require_usual_numbers
from manyfit.families._protocol import (
    AffineStep,
    Cost,
    Family,
    FoldRows,
    Iterations,
    MomentSums,
    Shape,
)
from manyfit.families._registry import (
    affine_step_of,
    family_of,
    register_affine_step,
    register_family,
    unregister_family,
)
from manyfit.families.smooth import GLMAnswers

__all__ = [
    "AffineStep",
    "Answers",
    "Cost",
    "Family",
    "FoldRows",
    "GLMAnswers",
    "Iterations",
    "LinearAnswers",
    "MomentSums",
    "Predictions",
    "Shape",
    "affine_step_of",
    "family_of",
    "register_affine_step",
    "register_family",
    "require_usual_numbers",
    "require_valid_answers",
    "unregister_family",
]
