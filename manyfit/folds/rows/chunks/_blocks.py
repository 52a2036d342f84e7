"""Blocks of rows that a function of the user's reads one after the other."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from scipy.sparse import issparse

from manyfit.folds.rows._inputs import NUMBERS
from manyfit.folds.rows._sparse_chunks import SparseRows, bytes_of
from manyfit.folds.rows.chunks._cuts import join_parts
from manyfit.folds.rows.chunks._frames import FrameRows, number_dtype_of, numbers_of
from manyfit.folds.rows.chunks._parts import PartRows
from manyfit.folds.rows.chunks._rows import with_retries
from manyfit.folds.splits._atoms import Array

_RECOMPUTED = (
    "Each pass calls the function of Blocks anew: if it computes or parses the blocks, write them to "
    "Parquet, Zarr or HDF5 first"
)


# Rounding may change the sums of a column that is computed anew by this share: of integers, and of floats.
ROUNDING = 1e-13
SHARES = {"float32": 1e-5, "float64": 1e-11}
# Columns, and values of so many rows, that are added up at a time: they stay in the cache.
TILE, SLAB = 2**12, 2**15
GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Blocks:
    """X as blocks of rows, read one after the other, with y and sample weights if these come with them.

    Parameters
    ----------
    blocks : callable or xgboost.DataIter
        ``blocks()`` returns an iterator of blocks from the first row on, the same ones in each call. A block
        is ``X``, ``(X, y)`` or ``(X, y, sample_weight)``; X is an array of shape (n_rows, n_features), a
        sparse matrix or array of SciPy, or a frame of pandas or polars, in host memory. Of an
        ``xgboost.DataIter``, ``reset`` and ``next`` are called; its ``data``, ``label`` and ``weight`` are
        read.

    Notes
    -----
    A first pass counts the rows and keeps y, the weights and checksums of X. Every further pass calls
    `blocks` again, and so does a look at some of the rows. If a column of a block has changed by more than
    rounding, a ValueError is raised. Blocks are copied: a function may make each in the memory of the last.

    Examples
    --------
    >>> import numpy as np
    >>> from manyfit.estimators import Ridge
    >>> from manyfit.folds import Blocks
    >>> def read_blocks():
    ...     for k in range(3):
    ...         X = np.arange(20.0).reshape(10, 2) ** (k + 1)
    ...         yield X, X[:, 0]
    >>> abs(Ridge(alpha=1e-9).fit(Blocks(read_blocks)).coef_).round(3)
    array([1., 0.])
    """

    def __init__(self, blocks: Any) -> None:
        if not callable(blocks) and not (hasattr(blocks, "next") and hasattr(blocks, "reset")):
            raise TypeError(
                "Blocks takes a function that returns an iterator of blocks, and got "
                f"{type(blocks).__name__}. An iterator can be read only once: pass the function that "
                "makes it."
            )
        self._read = blocks if callable(blocks) else lambda: _iterate(blocks)
        self.source = blocks

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """X, y and sample weight of each block, None where there is none."""
        for block in self._read():
            yield (*block, None, None)[:3] if isinstance(block, tuple) else (block, None, None)


def _iterate(data_iter: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The blocks of an `xgboost.DataIter`."""
    found: list[tuple[Any, Any, Any]] = []

    def take(data: Any, label: Any = None, weight: Any = None, **_: Any) -> None:
        found.append((data, label, weight))

    data_iter.reset()
    while data_iter.next(take):
        yield found.pop()


class CountedBlocks:
    """The first pass over blocks: their lengths, y, weights and dtypes; the blocks, too, if they are few.

    Attributes
    ----------
    y, sample_weight : ndarray or None
        Of all rows.
    kept : array or frame, or None
        All rows, if they take at most `memory` bytes.
    """

    def __init__(self, blocks: Blocks, memory: int) -> None:
        self.blocks = blocks
        self.lengths, self.nbytes = list[int](), 0
        targets, weights, kept = list[Any](), list[Any](), list[Any]()
        self.names: list[Any] | None = None
        self.dtypes: list[Any] = []
        self.checksums: list[dict[Any, Array]] = []
        self.is_sparse, self.n_columns = False, 0
        for k, (X, y, w) in enumerate(_each(blocks)):
            self._require_block(k, X, y, w)
            self.lengths.append(X.shape[0])
            self.checksums.append(_checksums(X))
            self.nbytes += bytes_of(X)
            targets.append(y)
            weights.append(w)
            kept = [*kept, X] if self.nbytes <= memory else []
        if not self.lengths:
            raise ValueError("Found array with 0 sample(s): the function of Blocks yields no block.")
        self.kept = join_parts(kept) if kept else None
        self.y, self.sample_weight = _joined("y", targets), _joined("sample_weight", weights)

    def rows(self, memory: int) -> PartRows:
        """The rows as they are read in later passes."""
        rows: _BlockRows
        if self.is_sparse:
            rows = SparseBlocks(self, memory)
        else:
            rows = ArrayBlocks(self, memory) if self.names is None else FrameBlocks(self, memory)
        rows.recomputed = _RECOMPUTED
        rows.bytes_read = self.nbytes
        return rows

    def _require_block(self, k: int, X: Any, y: Any, w: Any) -> None:
        """Raise ValueError for a block that does not go with those before it."""
        is_frame, is_sparse = hasattr(X, "columns") and hasattr(X, "to_numpy"), issparse(X)
        is_array = type(X) in (np.ndarray, np.memmap) or is_sparse
        if not is_frame and (not is_array or X.ndim != 2):
            found = type(X).__name__ + (f" of {X.ndim} dimensions" if hasattr(X, "ndim") else "")
            raise ValueError(
                f"Block {k} of X is a {found}. Blocks are arrays of two dimensions, frames of pandas or "
                "polars, or sparse matrices of SciPy."
            )
        names, n_columns = list(X.columns) if is_frame else None, X.shape[1]
        dtypes = [number_dtype_of(one) for one in X.dtypes] if is_frame else [X.dtype]
        if not self.lengths:
            self.names, self.dtypes, self.n_columns, self.is_sparse = names, dtypes, n_columns, is_sparse
        if is_sparse != self.is_sparse:
            kinds = ("dense", "sparse") if self.is_sparse else ("sparse", "dense")
            raise ValueError(f"Block {k} of X is {kinds[0]}, and block 0 is {kinds[1]}.")
        if names != self.names or n_columns != self.n_columns:
            columns = f"{n_columns} columns" if names is None else f"columns {names[:10]}"
            first = f"{self.n_columns}" if self.names is None else f"{self.names[:10]}"
            raise ValueError(f"Block {k} of X has {columns}, and block 0 has {first}.")
        if not is_frame and X.dtype.str[1:] not in NUMBERS | {"b1"}:
            raise ValueError(f"Block {k} of X is of dtype {X.dtype}. Blocks are read of numbers.")
        self.dtypes = [_common(one, other) for one, other in zip(self.dtypes, dtypes, strict=True)]
        for name, one in (("y", y), ("sample_weight", w)):
            if one is not None and len(one) != X.shape[0]:
                raise ValueError(f"Block {k} has {X.shape[0]} rows of X, and {len(one)} of {name}.")


def _common(one: np.dtype[Any] | None, other: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """The dtype of a column whose blocks have these two."""
    return None if one is None or other is None else np.dtype(np.result_type(one, other))


def _joined(name: str, parts: list[Any]) -> Array | None:
    """The targets or weights of all blocks; raises ValueError if some have none."""
    without = [k for k, part in enumerate(parts) if part is None]
    if not without:
        return np.concatenate([np.asarray(part) for part in parts])
    if len(without) < len(parts):
        raise ValueError(f"Block {without[0]} has no {name}, and others have it.")
    return None


def _each(blocks: Blocks) -> Iterator[tuple[Any, Any, Any]]:
    """The blocks of a first pass; one that cannot be read is asked for again, and an error has its number."""
    in_order = _InOrder(blocks)
    for k in count():
        try:
            block = with_retries(partial(in_order.get, k))
        except Exception as error:
            error.add_note(f"Block {k} of X could not be read.")
            raise
        if block is None:
            return
        yield block


def _checksums(X: Any, columns: Sequence[Any] | None = None) -> dict[Any, Array]:
    """The checksums of the columns of an array, or of the columns of numbers of a frame, by name."""
    if isinstance(X, np.ndarray):
        return {None: _checksum(X)}
    if issparse(X):
        X = X.tocsr()
        return {None: np.concatenate([_checksum(one) for one in (X.data, X.indices, X.indptr)], axis=2)}
    names = list(X.columns) if columns is None else columns
    if len(set(names)) < len(names):  # such a frame is refused
        return {}
    numbers = [name for name in names if number_dtype_of(X[name].dtype) is not None]
    return {name: _checksum(numbers_of(X[name])) for name in numbers}


def _checksum(values: Array) -> Array:
    """Sums of each column, as `_sums` has them: those of its numbers, and those of what is no number."""
    matrix = values.reshape(len(values), -1) if values.size else np.zeros((0, 1))
    tiles = [matrix[:, start : start + TILE] for start in range(0, matrix.shape[1], TILE)]
    sums = np.concatenate([_sums(tile) for tile in tiles], axis=1)
    others = np.zeros_like(sums)
    lacking = np.flatnonzero(~np.isfinite(sums[2]))
    if lacking.size:
        some = matrix[:, lacking]
        finite = np.isfinite(some)
        sums[:, lacking] = _sums(np.where(finite, some, 0.0))
        marks = np.nan_to_num(np.where(finite, 0.0, some), nan=1.0, posinf=2.0, neginf=3.0)
        others[:, lacking] = _sums(marks)
    return np.stack([sums, others])


def _sums(X: Array) -> Array:
    """Sums of each column: plain, weighted by place, and of absolute values."""
    n, p = X.shape
    fold = max(1, TILE // (4 * p))  # short rows are added up side by side
    step = fold * max(1, SLAB // (fold * p))
    sums = np.zeros((3, fold * p))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n, step):
            slab = np.ascontiguousarray(X[start : start + step], dtype=np.float64)
            if len(slab) % fold:
                slab = np.concatenate([slab, np.zeros((-len(slab) % fold, p))])
            slab = slab.reshape(-1, fold * p)
            weights = _weights(start // fold, len(slab))
            sums[0] += weights[0] @ slab
            sums[1] += weights[1] @ slab
            sums[2] += weights[0] @ np.abs(slab)
        plain, weighted, absolute = sums.reshape(3, fold, p)
        return np.stack([plain.sum(axis=0), _weights(0, fold)[1] @ weighted, absolute.sum(axis=0)])


def _weights(start: int, size: int) -> Array:
    """Ones, and weights by which rows count in their places: those of neighbours differ much."""
    return np.stack([np.ones(size), 0.5 + np.arange(start, start + size) * GOLDEN % 1.0])


def _is_same(one: Array, other: Array, dtype: np.dtype[Any] | None) -> bool:
    """Whether the checksums of all columns differ by no more than rounding."""
    if one.shape != other.shape:
        return False
    share = SHARES.get("" if dtype is None else dtype.name, ROUNDING)
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= share * one[:, 2:]
    return bool((near | (one == other) | (np.isnan(one) & np.isnan(other))).all())


def _own(data: Any) -> Any:
    """A copy of what a function may overwrite when it makes its next block, which is read ahead."""
    if isinstance(data, np.ndarray):
        return data.copy("K")
    if isinstance(data, list) or hasattr(data, "iloc") or issparse(data):
        return data.copy()
    is_polars = type(data).__module__.startswith("polars.")
    return data[np.arange(len(data))] if is_polars else data  # its own copies share memory


class _InOrder:
    """The blocks by number: read on from the last one, or from the first again; `n_read` is the next."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.n_read, self._iterator = 0, iter(blocks)
        self._failed: BaseException | None = None

    def get(self, k: int) -> tuple[Any, Any, Any] | None:
        """X, y and weights of a block; None if there are no more blocks."""
        if k < self.n_read:
            self.n_read, self._iterator = 0, iter(self._blocks)
        while True:
            try:
                block = next(self._iterator, None)
            except BaseException as error:
                # A generator yields no more after it: the next read begins again.
                self.n_read, self._iterator = 0, iter(self._blocks)
                self._failed = error
                raise
            if block is None and self._failed is not None:
                raise self._failed  # a function that then yields fewer blocks has lost some
            if block is None:
                return None
            self.n_read += 1
            if self.n_read > k:
                self._failed = None
                X, y, w = block
                return _own(X), _own(y), _own(w)


class _BlockRows(PartRows):
    """Blocks of a function."""

    def _open(self, counted: CountedBlocks) -> None:
        self._in_order, self._checksums = _InOrder(counted.blocks), counted.checksums
        self.identity = ("Blocks", id(counted.blocks.source), *counted.lengths)

    def block_again(self, k: int, columns: Sequence[Any] | None = None) -> Any:
        """X of a block that the first pass has found; raises ValueError if its numbers have changed."""
        block = self._in_order.get(k)
        if block is None:
            raise ValueError(
                f"The function of Blocks yields {self._in_order.n_read} blocks, and yielded {self._n_parts} "
                "before."
            )
        X, known = block[0], self._checksums[k]
        if self._lengths is not None and X.shape[0] != self._lengths[k]:  # which the caller finds
            return X
        for name, found in _checksums(X, columns).items():
            if name in known and not _is_same(known[name], found, self._dtype_of(name)):
                where = "" if name is None else f" in column {name!r}"
                raise ValueError(
                    f"Block {k} of X has other numbers{where} than in the first pass. The function of Blocks "
                    "has to yield the same blocks in each call: give a seed to what is random in it, or "
                    "write the blocks to a file first."
                )
        return X

    def _dtype_of(self, name: Any) -> np.dtype[Any] | None:
        return self.dtype

    def why_not_on_workers(self) -> str:
        return "a function yields its blocks one after the other, and no worker can begin amid them"


class ArrayBlocks(_BlockRows):
    """Blocks that are arrays."""

    def __init__(self, counted: CountedBlocks, memory: int) -> None:
        lengths = counted.lengths
        dtype = np.dtype(np.result_type(*counted.dtypes)) if counted.dtypes else np.dtype(float)
        super().__init__("Blocks of arrays", counted.n_columns, dtype, len(lengths), lengths, memory)
        self._open(counted)

    def read_part(self, k: int, columns: Sequence[int] | None = None) -> Any:
        part = np.asarray(self.block_again(k))
        return part if columns is None else part[:, columns]


class SparseBlocks(_BlockRows, SparseRows):
    """Blocks that are sparse matrices."""

    def __init__(self, counted: CountedBlocks, memory: int) -> None:
        lengths, dtype = counted.lengths, np.dtype(np.result_type(*counted.dtypes))
        entry_bytes = counted.nbytes / max(sum(lengths), 1)
        SparseRows.__init__(
            self, "Blocks of sparse matrices", counted.n_columns, dtype, len(lengths), lengths, memory,
            entry_bytes,
        )  # fmt: skip
        self._open(counted)

    def read_part(self, k: int, columns: Sequence[int] | None = None) -> Any:
        part = self.block_again(k).tocsr()
        return part if columns is None else part[:, columns]


class FrameBlocks(_BlockRows, FrameRows):
    """Blocks that are frames."""

    def __init__(self, counted: CountedBlocks, memory: int) -> None:
        lengths = counted.lengths
        assert counted.names is not None
        super().__init__("Blocks of frames", counted.names, counted.dtypes, len(lengths), lengths, memory)
        self._open(counted)

    def _dtype_of(self, name: Any) -> np.dtype[Any] | None:
        return self.dtypes[self.names.index(name)]

    def read_columns(self, k: int, columns: Sequence[str]) -> Any:
        frame = self.block_again(k, columns)
        return frame if list(frame.columns) == list(columns) else frame[list(columns)]
