"""Folded data: splits, atoms, moments and the views of a fold that families read."""

from manyfit.exceptions import Unsupported
from manyfit.folds._blas_threads import check_blas_threads, map_threads
from manyfit.folds._folded_matrix import Fold, FoldArrays, FoldedData, FoldedMatrix, SingleFold, Weights
from manyfit.folds.moments._moments import AtomMoments, Moments, moments_of_rows
from manyfit.folds.moments._transformed import FeatureMoments, Spectrum, TransformedMoments
from manyfit.folds.passes._data import PassData, finite_middle, is_sparse, passes_over, require_classes
from manyfit.folds.passes._device import DevicePasses
from manyfit.folds.passes._passes import DensePasses, Passes, SparsePasses
from manyfit.folds.passes._rare_features import merge_rare_features
from manyfit.folds.rows._index import n_rows, row_blocks, take_rows
from manyfit.folds.rows._inputs import (
    as_labels,
    as_matrix,
    as_matrix_or_csr,
    as_targets,
    as_weights,
    distinct_labels,
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
    "FoldArrays",
    "FoldedData",
    "FoldedMatrix",
    "Moments",
    "PassData",
    "Passes",
    "Rows",
    "SingleFold",
    "SparsePasses",
    "Spectrum",
    "Splits",
    "TransformedMoments",
    "Unsupported",
    "Weights",
    "as_labels",
    "as_matrix",
    "as_matrix_or_csr",
    "as_targets",
    "as_weights",
    "check_blas_threads",
    "distinct_labels",
    "finite_middle",
    "for_splitter",
    "is_sparse",
    "map_threads",
    "merge_rare_features",
    "moments_of_rows",
    "n_rows",
    "passes_over",
    "require_classes",
    "row_blocks",
    "take_rows",
    "train_test_split",
]
