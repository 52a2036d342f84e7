"""Folded data: splits, atoms, moments and the views of a fold that families read."""

from manyfit.exceptions import Unsupported
from manyfit.folds._blas_threads import checked, map_threads
from manyfit.folds._folded_matrix import Fold, FoldedData, GivenFold, GivenRows, SplitData, Weights
from manyfit.folds.moments._device import brought_home
from manyfit.folds.moments._moments import AtomMoments, Moments, moments_of_rows
from manyfit.folds.moments._transformed import FeatureMoments, Spectrum, View
from manyfit.folds.passes._data import PassData, finite_middle, is_sparse, passes_over, require_classes
from manyfit.folds.passes._device import DevicePasses
from manyfit.folds.passes._passes import DensePasses, Passes, SparsePasses
from manyfit.folds.passes._rare_features import condensed
from manyfit.folds.rows._index import blocks_of, length_of, rows_of
from manyfit.folds.rows._inputs import (
    as_labels,
    as_matrix,
    as_matrix_or_csr,
    as_targets,
    as_weights,
    distinct_labels,
    is_foreign,
)
from manyfit.folds.splits._atoms import AtomGroup, Rows
from manyfit.folds.splits._device_splitters import SPLITTERS, for_splitter, train_test_split
from manyfit.folds.splits._splits import Splits

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
    "for_splitter",
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
