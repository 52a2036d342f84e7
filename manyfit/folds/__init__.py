"""Folded data: splits, atoms, moments and the views of a fold that families read."""

from manyfit.folds._atoms import AtomGroup, Rows
from manyfit.folds._condense import condensed
from manyfit.folds._device_moments import brought_home
from manyfit.folds._device_passes import DevicePasses
from manyfit.folds._folded import Fold, FoldedData, GivenFold, GivenRows, SplitData, Weights
from manyfit.folds._matrix import (
    as_labels,
    as_matrix,
    as_matrix_or_csr,
    as_targets,
    as_weights,
    distinct_labels,
    is_foreign,
)
from manyfit.folds._moments import AtomMoments, Moments, moments_of_rows
from manyfit.folds._pass_data import PassData, finite_middle, is_sparse, passes_over, require_classes
from manyfit.folds._passes import DensePasses, Passes, SparsePasses
from manyfit.folds._rows import blocks_of, length_of, rows_of
from manyfit.folds._splits import Splits
from manyfit.folds._splitters import SPLITTERS, train_test_split
from manyfit.folds._threads import checked, map_threads
from manyfit.folds._unsupported import Unsupported
from manyfit.folds._view import FeatureMoments, Spectrum, View

__all__ = [
    "SPLITTERS",
    "AtomGroup",
    "AtomMoments",
    "DensePasses",
    "DevicePasses",
    "FeatureMoments",
    "Fold",
    "FoldedData",
    "GivenFold",
    "GivenRows",
    "Moments",
    "PassData",
    "Passes",
    "Rows",
    "SparsePasses",
    "Spectrum",
    "SplitData",
    "Splits",
    "Unsupported",
    "View",
    "Weights",
    "as_labels",
    "as_matrix",
    "as_matrix_or_csr",
    "as_targets",
    "as_weights",
    "blocks_of",
    "brought_home",
    "checked",
    "condensed",
    "distinct_labels",
    "finite_middle",
    "is_foreign",
    "is_sparse",
    "length_of",
    "map_threads",
    "moments_of_rows",
    "passes_over",
    "require_classes",
    "rows_of",
    "train_test_split",
]
