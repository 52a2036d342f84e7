"""Families that are answered by iterations over all settings at once."""

from manyfit.families.smooth._cost import cost_of_classes
from manyfit.families.smooth._glm import TWEEDIE
from manyfit.families.smooth._glm_answers import (
    STOPS_EARLY,
    Decisions,
    GLMAnswers,
    Link,
    Probabilities,
    linked_answers,
)
from manyfit.families.smooth._linear_svm import LINEAR_SVC, LINEAR_SVR
from manyfit.families.smooth._logistic import LOGISTIC

__all__ = [
    "LINEAR_SVC",
    "LINEAR_SVR",
    "LOGISTIC",
    "STOPS_EARLY",
    "TWEEDIE",
    "Decisions",
    "GLMAnswers",
    "Link",
    "Probabilities",
    "cost_of_classes",
    "linked_answers",
]
