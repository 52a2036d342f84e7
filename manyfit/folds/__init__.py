"""Folded data: splits, atoms, moments and the views of a fold that families read."""

from manyfit.folds._atoms import AtomGroup
from manyfit.folds._folded import Fold, FoldedData, GivenFold, GivenRows, SplitData, Weights
from manyfit.folds._matrix import as_labels, as_matrix, as_targets, as_weights
from manyfit.folds._moments import AtomMoments, Moments, moments_of_rows
from manyfit.folds._splits import Splits
from manyfit.folds._unsupported import Unsupported
from manyfit.folds._view import FeatureMoments, Spectrum, View

__all__ = [
    "AtomGroup",
    "AtomMoments",
    "FeatureMoments",
    "Fold",
    "FoldedData",
    "GivenFold",
    "GivenRows",
    "Moments",
    "Spectrum",
    "SplitData",
    "Splits",
    "Unsupported",
    "View",
    "Weights",
    "as_labels",
    "as_matrix",
    "as_targets",
    "as_weights",
    "moments_of_rows",
]
