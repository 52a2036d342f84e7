"""Rows of Parquet files: row groups of a `pyarrow.dataset.Dataset`, of which wanted columns are read."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from manyfit.folds.rows.chunks._cuts import file_stamp
from manyfit.folds.rows.chunks._frames import FrameRows, number_dtype_of

KIND = "pyarrow.dataset.Dataset"
_MOST_NAMES = 10  # of columns, in an error


class ParquetRows(FrameRows):
    """Rows of a `pyarrow.dataset.Dataset`, a row group at a time, in frames of pandas.

    Files of other formats are read whole, one after the other.
    """

    def __init__(self, X: Any, memory: int, columns: Sequence[str] | None = None) -> None:
        schema = X.schema
        names = schema.names if columns is None else columns
        try:
            self._parts = [part for fragment in X.get_fragments() for part in _row_groups(fragment)]
        except ValueError as error:
            error.add_note(f"X is a {KIND} that filters rows; write these rows to a file first.")
            raise
        lengths = [_length(part) for part in self._parts]
        empty = schema.empty_table().to_pandas()
        dtypes = [number_dtype_of(empty[name].dtype) for name in names]
        gaps = _columns_with_gaps(self._parts)
        dtypes = [
            _with_gaps(dtype) if gaps is None or name in gaps else dtype
            for name, dtype in zip(names, dtypes, strict=True)
        ]
        self._schema, self.in_files = schema, hasattr(X, "files")
        super().__init__(KIND, names, dtypes, len(self._parts), lengths, memory)
        self._files = tuple(X.files) if self.in_files and _is_local(X) else ()
        self.identity = (KIND, tuple(X.files) if hasattr(X, "files") else id(X), self.names, *lengths)

    def file_identity(self) -> tuple[Any, ...] | None:
        if not self._files or any(getattr(part, "buffer", None) is not None for part in self._parts):
            return None
        stamps = {path: file_stamp(path) for path in self._files}
        # Folders are features of a partitioned data set, and it may hold some row groups of a file only.
        parts = [
            (stamps[part.path], [group.id for group in part.row_groups], str(part.partition_expression))
            for part in self._parts
        ]
        schema = self._schema.to_string(truncate_metadata=False)
        return self.names, schema, list(stamps.values()), parts, self._lengths

    @property
    def path(self) -> str:
        """The file, or the folder of several."""
        return os.path.commonpath(self._files) if self._files else ""

    def read_columns(self, k: int, columns: Sequence[str]) -> Any:
        return self._parts[k].to_table(schema=self._schema, columns=list(columns)).to_pandas()

    def why_not_on_workers(self) -> str:
        return "" if self.in_files else "it is no data set of files"


def open_parquet(X: Any) -> Any:
    """The `pyarrow.dataset.Dataset` of a path of Parquet files, with the types of all its files.

    Anything else is returned as it is.
    """
    if not is_parquet_path(X):
        return _with_known_types(X) if hasattr(X, "get_fragments") else X
    try:
        import pyarrow.dataset
    except ImportError as error:
        error.add_note(f"X={os.fspath(X)!r} is read by pyarrow, which is not installed.")
        raise
    try:
        data = pyarrow.dataset.dataset(os.fspath(X), format="parquet", partitioning="hive")
    except FileNotFoundError as error:  # whose text is the path alone
        raise FileNotFoundError(
            f"X={os.fspath(X)!r} is a path of Parquet files, and there is no such file or folder."
        ) from error
    return _with_known_types(data)


def _with_known_types(X: Any) -> Any:
    """A data set whose first file has no rows, and so no types, with the types of the others."""
    if not any(str(field.type) == "null" for field in X.schema):
        return X
    import pyarrow

    try:
        return X.replace_schema(
            pyarrow.unify_schemas([X.schema, *(part.physical_schema for part in X.get_fragments())])
        )
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # the types of two files differ
        return X


def is_parquet_path(X: Any) -> bool:
    """Whether X is a path, or a string that ends in ``.parquet`` or is a folder."""
    return isinstance(X, os.PathLike) or (isinstance(X, str) and (X.endswith(".parquet") or os.path.isdir(X)))


def read_column(X: Any, name: str) -> Any:
    """A column of a `pyarrow.dataset.Dataset` as a series of pandas."""
    names = X.schema.names
    if name not in names:
        close = get_close_matches(name, names, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        listed = ", ".join(map(repr, names[:_MOST_NAMES]))
        raise ValueError(f"y={name!r} is not among the columns of X: {listed}{more}.{meant}")
    return X.to_table(columns=[name]).to_pandas()[name]


def _is_local(X: Any) -> bool:
    """Whether X is of Parquet files of this machine."""
    names = (type(getattr(X, name, None)).__name__ for name in ("filesystem", "format"))
    return tuple(names) == ("LocalFileSystem", "ParquetFileFormat")


def _row_groups(fragment: Any) -> list[Any]:
    split = getattr(fragment, "split_by_row_group", None)
    return [fragment] if split is None else split()


def _length(part: Any) -> int:
    groups = getattr(part, "row_groups", None)
    return sum(group.num_rows for group in groups) if groups else part.count_rows()


def _with_gaps(dtype: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """The dtype that pandas gives a column with gaps; None if that is no dtype of numbers."""
    if dtype is None or dtype.kind == "f":
        return dtype
    return None if dtype.kind == "b" else np.dtype(np.float64)


def _columns_with_gaps(parts: Sequence[Any]) -> set[str] | None:
    """Columns that may hold gaps, as far as the files' statistics tell; None if nothing is known."""
    found = set[str]()
    for part in parts:
        metadata = getattr(part, "metadata", None)
        if metadata is None:
            return None
        for group in part.row_groups:
            row_group = metadata.row_group(group.id)
            # Rows that are not there are no gaps, and have no statistics.
            for column in map(row_group.column, range(row_group.num_columns if row_group.num_rows else 0)):
                known = column.statistics
                if known is None or not known.has_null_count or known.null_count:
                    found.add(column.path_in_schema)
    return found
