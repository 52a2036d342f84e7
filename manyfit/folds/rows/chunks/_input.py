"""X, y and weights as users give them, where X may be read in chunks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.folds.rows.chunks._blocks import Blocks, CountedBlocks
from manyfit.folds.rows.chunks._parquet import open_parquet, read_column
from manyfit.folds.rows.chunks._parts import PartRows
from manyfit.folds.rows.chunks._registry import as_chunk_rows, is_dataset, is_in_file, is_larger
from manyfit.folds.rows.chunks._rows import ChunkRows


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
