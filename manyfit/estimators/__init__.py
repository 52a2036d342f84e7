"""Families: how estimators of one kind answer many settings on many folds at once."""

from manyfit.estimators import (  # noqa: F401  (they register themselves)
    _affine_steps,
    _glm,
    _linear,
    _linear_svm,
    _logistic,
)
from manyfit.estimators._family import (
    AffineStep,
    Answers,
    Cost,
    Family,
    LinearAnswers,
    Predictions,
    Shape,
    affine_step_of,
    family_of,
    register_affine_step,
    register_family,
    unregister_family,
)
from manyfit.estimators._linked import LinkedAnswers

__all__ = [
    "AffineStep",
    "Answers",
    "Cost",
    "Family",
    "LinearAnswers",
    "LinkedAnswers",
    "Predictions",
    "Shape",
    "affine_step_of",
    "family_of",
    "register_affine_step",
    "register_family",
    "unregister_family",
]
