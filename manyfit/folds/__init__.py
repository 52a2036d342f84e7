"""Folded data: rows of X of any kind, splits, atoms, moments and passes, as families read them."""

from typing import TYPE_CHECKING

from manyfit.exceptions import Unsupported
from manyfit.folds._blas_threads import blas_threads, check_blas_threads, map_threads, single_blas_thread
from manyfit.folds._classed_folds import ClassedFold, ClassedFolds
from manyfit.folds._fold import Fold, FoldArrays, FoldedData
from manyfit.folds._folded_matrix import FoldedMatrix, Weights
from manyfit.folds._pass_data import PassData, finite_middle, require_classes
from manyfit.folds._single_fold import SingleFold
from manyfit.folds.encodings._chunk_encoding import ChunkEncoding
from manyfit.folds.encodings._chunk_table import ChunkTable
from manyfit.folds.encodings._columns import (
    CategoryColumn,
    EncodedFold,
    FoldColumns,
    LinearColumns,
    MomentsNeeded,
    NumberColumn,
    as_categories,
    from_moments,
)
from manyfit.folds.encodings._encoding import Encoding
from manyfit.folds.encodings._known_numbers import KnownNumbers
from manyfit.folds.encodings._products import product_columns
from manyfit.folds.encodings._table import Table
from manyfit.folds.encodings._term_counts import TermCounts
from manyfit.folds.encodings._term_selection import TermSelection
from manyfit.folds.encodings._text import FittedVectorizer, Texts, counts_texts, selection_key, tokens_key
from manyfit.folds.moments._classes import ClassMoments, ClassSpreads, merge_two_spreads
from manyfit.folds.moments._moments import Moments
from manyfit.folds.moments._setwise_merge import SetwiseMerge
from manyfit.folds.moments._spreads import Spreads
from manyfit.folds.moments._targets import TargetMoments, sum_targets
from manyfit.folds.moments._transformed import NO_NOTES, Spectrum, StepNotes, TransformedMoments
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.passes._samples import RowSample
from manyfit.folds.rows._chunk_reduction import KeptPass, Node, RangeStore, ReadSums, Workers
from manyfit.folds.rows._host import HostRows, NumPyRows
from manyfit.folds.rows._inputs import as_matrix, as_matrix_or_csr, holds_categories
from manyfit.folds.rows._mixed import MixedRows
from manyfit.folds.rows._registry import (
    as_row_source,
    is_row_source,
    own_row_source,
    register_row_source,
    unregister_row_source,
    wrap_rows,
)
from manyfit.folds.rows._some_rows import SomeRows
from manyfit.folds.rows._source import RowSource
from manyfit.folds.rows._sparse_chunks import TransformedRows
from manyfit.folds.rows._targets import (
    as_labels,
    as_targets,
    as_weights,
    class_indicators,
    distinct_labels,
    indicated_classes,
    require_one_dimension,
)
from manyfit.folds.rows.chunks._blocks import Blocks
from manyfit.folds.rows.chunks._dask import has_sparse_chunks
from manyfit.folds.rows.chunks._genotypes import Genotypes
from manyfit.folds.rows.chunks._inputs import (
    ChunkInput,
    as_chunk_rows,
    is_dask,
    is_in_file,
    load_targets,
    may_be_in_chunks,
    prepare_rows,
    read_input,
)
from manyfit.folds.rows.chunks._parquet import is_parquet_path
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.rows.chunks._sums import ChunkSums
from manyfit.folds.splits._atoms import Array, AtomGroup, Rows, as_rows, only_splits
from manyfit.folds.splits._row_index import n_rows, row_blocks, take_last, take_rows
from manyfit.folds.splits._splits import Splits
from manyfit.folds.splits._splitter_arguments import splitter_arguments, train_test_split

if TYPE_CHECKING:
    from manyfit.folds.splits._splitter_classes import SPLITTERS
else:
    from manyfit.introspection.late_names import late_names

    __getattr__, __dir__ = late_names(__name__, "splits._splitter_classes")

__all__ = [
    "NO_NOTES",
    "SPLITTERS",
    "Array",
    "AtomGroup",
    "Blocks",
    "CategoryColumn",
    "ChunkEncoding",
    "ChunkInput",
    "ChunkRows",
    "ChunkSums",
    "ChunkTable",
    "ClassMoments",
    "ClassSpreads",
    "ClassedFold",
    "ClassedFolds",
    "EncodedFold",
    "Encoding",
    "FittedVectorizer",
    "Fold",
    "FoldArrays",
    "FoldColumns",
    "FoldedData",
    "FoldedMatrix",
    "Genotypes",
    "HostRows",
    "KeptPass",
    "KnownNumbers",
    "LinearColumns",
    "MixedRows",
    "Moments",
    "MomentsNeeded",
    "Node",
    "NumPyRows",
    "NumberColumn",
    "PassData",
    "Passes",
    "RangeStore",
    "ReadSums",
    "RowSample",
    "RowSource",
    "Rows",
    "SetwiseMerge",
    "SingleFold",
    "SomeRows",
    "Spectrum",
    "Splits",
    "Spreads",
    "StepNotes",
    "Table",
    "TargetMoments",
    "TermCounts",
    "TermSelection",
    "Texts",
    "TransformedMoments",
    "TransformedRows",
    "Unsupported",
    "Weights",
    "Workers",
    "as_categories",
    "as_chunk_rows",
    "as_labels",
    "as_matrix",
    "as_matrix_or_csr",
    "as_row_source",
    "as_rows",
    "as_targets",
    "as_weights",
    "blas_threads",
    "check_blas_threads",
    "class_indicators",
    "counts_texts",
    "distinct_labels",
    "finite_middle",
    "from_moments",
    "has_sparse_chunks",
    "holds_categories",
    "indicated_classes",
    "is_dask",
    "is_in_file",
    "is_parquet_path",
    "is_row_source",
    "load_targets",
    "map_threads",
    "may_be_in_chunks",
    "merge_two_spreads",
    "n_rows",
    "only_splits",
    "own_row_source",
    "prepare_rows",
    "product_columns",
    "read_input",
    "register_row_source",
    "require_classes",
    "require_one_dimension",
    "row_blocks",
    "selection_key",
    "single_blas_thread",
    "splitter_arguments",
    "sum_targets",
    "take_last",
    "take_rows",
    "tokens_key",
    "train_test_split",
    "unregister_row_source",
    "wrap_rows",
]
