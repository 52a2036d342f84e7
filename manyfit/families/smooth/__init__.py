"""Families that are answered by iterations over all settings at once."""

from manyfit.families.smooth._glm import TWEEDIE
from manyfit.families.smooth._glm_answers import GLMAnswers, Probabilities
from manyfit.families.smooth._linear_svm import LINEAR_SVC, LINEAR_SVR
from manyfit.families.smooth._logistic import LOGISTIC

__all__ = ["LINEAR_SVC", "LINEAR_SVR", "LOGISTIC", "TWEEDIE", "GLMAnswers", "Probabilities"]
