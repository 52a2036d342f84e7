"""Families that are answered by iterations over all settings at once."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyfit.families.smooth._glm import TWEEDIE
    from manyfit.families.smooth._glm_answers import GLMAnswers, Probabilities
    from manyfit.families.smooth._linear_svm import LINEAR_SVC, LINEAR_SVR
    from manyfit.families.smooth._logistic import LOGISTIC
else:
    from manyfit.introspection.late_names import late_names

    __getattr__, __dir__ = late_names(__name__, "_glm_answers", "_glm", "_linear_svm", "_logistic")

__all__ = ["LINEAR_SVC", "LINEAR_SVR", "LOGISTIC", "TWEEDIE", "GLMAnswers", "Probabilities"]
