"""Classifiers that model the rows of each class: naive Bayes, discriminant analysis, nearest centroids."""

from manyfit.families.generative._discrete_nb import BERNOULLI, CATEGORICAL, COMPLEMENT, MULTINOMIAL
from manyfit.families.generative._gaussian_nb import GAUSSIAN
from manyfit.families.generative._linear import LINEAR_DISCRIMINANT
from manyfit.families.generative._nearest_centroid import NEAREST_CENTROID
from manyfit.families.generative._quadratic import QUADRATIC

__all__ = [
    "BERNOULLI",
    "CATEGORICAL",
    "COMPLEMENT",
    "GAUSSIAN",
    "LINEAR_DISCRIMINANT",
    "MULTINOMIAL",
    "NEAREST_CENTROID",
    "QUADRATIC",
]
