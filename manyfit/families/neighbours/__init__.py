"""Nearest neighbours: one query of the largest number of them answers all smaller ones."""

from manyfit.families.neighbours._classifier import NEIGHBORS_CLASSIFIER
from manyfit.families.neighbours._regressor import NEIGHBORS_REGRESSOR

__all__ = ["NEIGHBORS_CLASSIFIER", "NEIGHBORS_REGRESSOR"]
