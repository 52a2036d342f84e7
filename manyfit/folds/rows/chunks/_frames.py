"""Rows of frames in parts: partitions of Dask, row groups of Parquet, blocks of a user."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from manyfit.folds.rows._inputs import NUMBERS
from manyfit.folds.rows.chunks._cuts import in_blocks
from manyfit.folds.rows.chunks._parts import PartRows
from manyfit.folds.splits._atoms import Array

# Bytes of a value that is no number, as far as nobody knows better.
OBJECT_BYTES = 32


class FrameRows(PartRows):
    """Base class of rows in parts that are frames; those of numbers alone are read as a matrix.

    A subclass defines `read_columns`.

    Parameters
    ----------
    kind, n_parts, lengths, memory
        See `PartRows`.
    names : sequence of str
        Names of the columns.
    dtypes : sequence of dtype or None
        NumPy's dtype of each column of numbers, None for a column of other things.

    Attributes
    ----------
    dtypes : tuple of dtype or None
        See above.
    """

    def __init__(
        self,
        kind: str,
        names: Sequence[Any],
        dtypes: Sequence[np.dtype[Any] | None],
        n_parts: int,
        lengths: Sequence[int] | None,
        memory: int,
    ) -> None:
        if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            raise ValueError(
                f"X, a {kind}, has columns {list(names)[:10]}. Chunks are read of frames whose columns have "
                "names that are strings, all different."
            )
        self.names, self.dtypes = tuple(names), tuple(dtypes)
        known = [dtype for dtype in dtypes if dtype is not None]
        dtype = np.dtype(np.result_type(*known)) if len(known) == len(names) and names else np.dtype(object)
        super().__init__(kind, len(names), dtype, n_parts, lengths, memory)

    @abstractmethod
    def read_columns(self, k: int, columns: Sequence[str]) -> Any:
        """Some columns of a part, as a frame of pandas or polars."""

    @property
    def objects(self) -> list[str]:
        """The names of the columns that hold no numbers."""
        return [name for name, dtype in zip(self.names, self.dtypes, strict=True) if dtype is None]

    @property
    def row_bytes(self) -> int:
        return self.column_bytes(range(len(self.names)))

    def column_bytes(self, columns: Sequence[int]) -> int:
        """Bytes of some columns of a row, about."""
        found = (self.dtypes[j] for j in columns)
        return sum(OBJECT_BYTES if dtype is None else dtype.itemsize for dtype in found)

    def read_part(self, k: int, columns: Sequence[int] | None = None) -> Any:
        wanted = self.names if columns is None else [self.names[j] for j in columns]
        return self._named(self.read_columns(k, wanted), wanted)

    def select(self, part: Any, columns: Sequence[int]) -> Any:
        """Some columns of a part."""
        return part[[self.names[j] for j in columns]]

    def load_frame(self, start: int, stop: int) -> Any:
        return self.load_columns(start, stop, range(len(self.names)))

    def load_columns(self, start: int, stop: int, columns: Sequence[int]) -> Any:
        frame = self.checked(lambda: self.read(start, stop, columns), start, stop)
        self.bytes_read += len(frame) * self.column_bytes(columns)
        return frame

    def frame_blocks(self, size: int) -> Iterator[Any]:
        """All rows as frames of `size` rows; the borders of chunks do not show."""
        for frame in in_blocks((frame for _, frame in self.frames()), size):
            # Rows have no names.
            yield frame.reset_index(drop=True) if hasattr(frame, "reset_index") else frame

    def _named(self, frame: Any, wanted: Sequence[str]) -> Any:
        """The frame of a part, checked against the columns of X."""
        names = list(frame.columns)
        if names != list(wanted):
            raise ValueError(f"X gave a chunk with columns {names[:10]}, not {list(wanted)[:10]}.")
        for name in names:
            found, expected = number_dtype_of(frame[name].dtype), self.dtypes[self.names.index(name)]
            if (found is None) != (expected is None) and len(frame) and not _is_empty(frame[name]):
                raise ValueError(
                    f"X gave a chunk with column {name!r} of dtype {frame[name].dtype}, and the others have "
                    f"{'objects' if expected is None else expected}."
                )
        return frame

    def as_numbers(self, block: Any, n: int) -> Array:
        """The numbers of a frame, NaN for gaps."""
        if self.dtype == object:
            raise TypeError(f"X has columns that are no numbers: {', '.join(map(repr, self.objects[:5]))}.")
        out = np.empty((n, len(self.names)), dtype=self.dtype)
        for j, name in enumerate(self.names):
            column = numbers_of(block[name])
            if not np.can_cast(column.dtype, self.dtype):
                raise ValueError(
                    f"X gave a chunk with column {name!r} of dtype {column.dtype}, and the others have "
                    f"{self.dtypes[j]}."
                )
            out[:, j] = column
        self.bytes_read += out.nbytes
        return out


def number_dtype_of(dtype: Any) -> np.dtype[Any] | None:
    """NumPy's dtype for a frame's dtype of numbers, float64 for nullable ones; None for other dtypes."""
    if isinstance(dtype, np.dtype):
        return dtype if dtype.str[1:] in NUMBERS | {"b1"} else None
    kind = getattr(dtype, "kind", None)  # of pandas' nullable and Arrow dtypes
    if kind is not None:
        return np.dtype(np.float64) if kind in "fiub" else None
    is_number = dtype.is_numeric() or str(dtype) == "Boolean"  # polars
    return np.dtype(np.float32 if str(dtype) == "Float32" else np.float64) if is_number else None


def numbers_of(column: Any) -> Array:
    """A column of numbers as an array; NaN for gaps."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column)
    if hasattr(column, "cast"):  # polars
        return np.asarray(column.to_numpy(), dtype=number_dtype_of(column.dtype))
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _is_empty(column: Any) -> bool:
    """Whether a column holds gaps only, so that its dtype says nothing."""
    is_gap = column.isna() if hasattr(column, "isna") else column.is_null()
    return bool(is_gap.all())
