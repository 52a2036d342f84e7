"""From X, y and weights, as users give them, to the `ChunkRows` that read them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.folds.rows._inputs import NUMBERS, has_dtype
from manyfit.folds.rows.chunks._blocks import Blocks, CountedBlocks
from manyfit.folds.rows.chunks._dask import (
    DaskFrameRows,
    DaskParts,
    DaskRows,
    DaskSparseRows,
    has_sparse_chunks,
    size_of_parts,
    with_pandas,
)
from manyfit.folds.rows.chunks._parquet import ParquetRows, open_parquet, read_column
from manyfit.folds.rows.chunks._parts import PartRows
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.rows.chunks._sliced import GENOTYPES, MemmapRows, SlicedRows

# By package and class; the packages are not imported.
_IN_FILES = {
    ("h5py", "Dataset"): "h5py.Dataset",
    ("zarr", "Array"): "zarr.Array",
    ("manyfit", "Genotypes"): GENOTYPES,
}
_OTHERS = {
    ("dask", "Array"): "dask array",
    ("dask", "DataFrame"): "dask frame",
    ("pyarrow", "Dataset"): "parquet",
    ("manyfit", "Blocks"): "blocks",
}
_kinds: dict[type, str] = {}


def is_in_file(X: Any) -> bool:
    """Whether X is an `h5py.Dataset`, a `zarr.Array` or packed `Genotypes`."""
    return _kind_of(X) in _IN_FILES.values()


def is_dataset(X: Any) -> bool:
    """Whether X is a `pyarrow.dataset.Dataset`."""
    return _kind_of(X) == "parquet"


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection of two dimensions whose chunks are NumPy arrays or pandas frames."""
    kind = _kind_of(X)
    return kind.startswith("dask") and X.ndim == 2 and _is_on_host(X, kind)


def may_be_in_chunks(X: Any) -> bool:
    """Whether X is of a class whose rows can be read in chunks; takes no longer than a look at its class."""
    return bool(_kind_of(X))


def is_larger(X: Any, memory: int) -> bool:
    """Whether X can be read in chunks and takes more than `memory` bytes.

    The size of a Dask collection of unknown lengths is that of two of its parts, times their number.
    """
    kind = _kind_of(X)
    if kind == "rows":
        return True
    if kind == "h5py.Dataset" and not getattr(X, "id", True):
        raise ValueError("X, an h5py.Dataset, belongs to a file that is closed. Keep the file open.")
    if not kind or kind == "blocks" or (kind.startswith("dask") and not _is_on_host(X, kind)):
        return False
    if kind == "parquet":
        return ParquetRows(X, 2**62).nbytes > memory
    if kind == "dask frame" or (kind == "dask array" and (has_sparse_chunks(X) or not _has_known_chunks(X))):
        return size_of_parts(X) > memory
    return int(np.prod(X.shape, dtype=np.int64)) * getattr(X.dtype, "itemsize", 8) > memory


def as_chunk_rows(X: Any, memory: int, columns: Sequence[str] | None = None) -> ChunkRows | None:
    """The rows of an X outside memory, read in chunks; None for an X of any other kind.

    `columns` are those of Parquet files that X has, all by default. Raises ValueError if X is no matrix
    or frame, and MemoryError if one chunk is too large for `memory`.
    """
    if isinstance(X, ChunkRows):
        return X
    kind = _kind_of(X)
    if kind == "memmap":
        return MemmapRows(X, memory) if X.ndim == 2 and has_dtype(X, NUMBERS | {"b1"}) else None
    if kind == "parquet":
        return ParquetRows(X, memory, columns)
    if kind.startswith("dask"):
        if not _is_on_host(X, kind):
            return None
        if kind == "dask frame":
            return DaskFrameRows(with_pandas(X), memory)
        if has_sparse_chunks(X):
            return DaskSparseRows(X, memory)
        return DaskRows(X, memory) if _has_known_chunks(X) else DaskParts(X, memory)
    return SlicedRows(X, kind, memory) if kind in _IN_FILES.values() else None


def _kind_of(X: Any) -> str:
    """The kind of an object that is read in chunks; empty for any other."""
    cls = type(X)
    if cls not in _kinds:
        _kinds[cls] = _class_kind(cls)
    return _kinds[cls]


def _class_kind(cls: type) -> str:
    if cls is np.memmap:
        return "memmap"
    if issubclass(cls, ChunkRows):
        return "rows"
    names = [(base.__module__.partition(".")[0], base.__name__) for base in cls.__mro__]
    return next((kind for name in names if (kind := (_IN_FILES | _OTHERS).get(name))), "")


def _is_on_host(X: Any, kind: str) -> bool:
    """Whether Dask makes arrays of NumPy or frames of pandas, in a collection that is read in chunks."""
    import dask

    if kind == "dask array":
        return dask.config.get("array.backend", None) in (None, "numpy") and (
            X.ndim != 2 or not np.isnan(X.shape[1])
        )
    return dask.config.get("dataframe.backend", None) in (None, "pandas")


def _has_known_chunks(X: Any) -> bool:
    """Whether the sizes of a Dask array's chunks are known."""
    return not np.isnan(sum(map(sum, X.chunks)))


@dataclass(frozen=True)
class ChunkInput:
    """X, y and sample weights of a call.

    Attributes
    ----------
    X : object
        In memory or lazy, if it is not read in chunks; else as given.
    y, sample_weight : object
        As given, or as they came with X.
    rows : ChunkRows or None
        The rows of an X that is read in chunks.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    rows: ChunkRows | None = None


def read_input(
    X: Any, y: Any, memory: Callable[[], int], most: int | None = None, names: Sequence[str] | None = None
) -> ChunkInput:
    """Take X and y as they are given: paths are opened, and y is taken from X if it comes with it.

    X is read in chunks if it takes more than `most` bytes, ``memory()`` by default. ``memory()`` is also what
    its reads may take. `names` are the columns that are read of a Parquet file, if it has them all.
    """
    X = open_parquet(X)
    if isinstance(X, Blocks):
        counted = CountedBlocks(X, memory() if most is None else most)
        if y is not None and counted.y is not None:
            raise ValueError("The blocks of X have targets, and y is given, too. Leave one of them out.")
        y = counted.y if y is None else y
        if counted.kept is not None:
            return ChunkInput(counted.kept, y, counted.sample_weight)
        return ChunkInput(X, y, counted.sample_weight, counted.rows(memory()))
    columns: list[str] | None = None
    if is_dataset(X):
        columns = [name for name in X.schema.names if not isinstance(y, str) or name != y]
        if names is not None and set(columns).issuperset(names):
            columns = list(names)
        y = read_column(X, y) if isinstance(y, str) else y
    if isinstance(X, ChunkRows) or is_larger(X, memory() if most is None else most):
        return ChunkInput(X, load_targets(y), None, as_chunk_rows(X, memory(), columns))
    X = load_file(X) if columns is None else X.to_table(columns=columns).to_pandas()
    return ChunkInput(X, load_targets(y))


def load_file(one: Any) -> Any:
    """An array of h5py or Zarr in memory; anything else as it is."""
    return one[...] if is_in_file(one) else one


def load_targets(y: Any) -> Any:
    """Targets in memory: `load_file`, or the one column of a `pyarrow.dataset.Dataset`."""
    if is_dataset(y):
        if len(y.schema.names) != 1:
            raise ValueError(f"y is a {type(y).__name__} of columns {y.schema.names[:10]}, not of one.")
        return read_column(y, y.schema.names[0])
    return load_file(y)


def prepare_rows(rows: ChunkRows, y: Any) -> None:
    """Make rows ready for a call: its y says how many they are, and they are read again if a read failed."""
    rows.start_anew()
    if isinstance(rows, PartRows) and y is not None and np.ndim(y) > 0:
        rows.expect(len(y))
