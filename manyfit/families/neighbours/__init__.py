"""Nearest neighbours: one query of the largest number, or the largest radius, answers all smaller ones."""

from manyfit.families.neighbours import _classifier, _radius, _regressor  # noqa: F401  (they register themselves)
