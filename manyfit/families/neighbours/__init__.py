"""Nearest neighbours: one query of the largest number of them answers all smaller ones."""

from manyfit.families.neighbours import _classifier, _regressor  # noqa: F401  (they register themselves)
