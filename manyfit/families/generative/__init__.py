"""Classifiers that model the rows of each class: naive Bayes, discriminant analysis, nearest centroids."""

from manyfit.families.generative import (  # noqa: F401  (they register themselves)
    _discrete_nb,
    _gaussian_nb,
    _linear,
    _nearest_centroid,
    _quadratic,
)
