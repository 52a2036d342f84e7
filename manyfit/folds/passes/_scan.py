"""The first look at X: a point amid its rows, and whether its numbers are finite."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, block_size, float_dtype, to_device_of, to_host
from manyfit.folds.moments._host import evenly_spread, median_row, middle
from manyfit.folds.splits._atoms import Array
from manyfit.folds.splits._row_index import RowReader, row_blocks

# Numbers that are summed at a time: 8 MiB of float64 on the host, 64 MiB on a device.
HOST_VALUES, DEVICE_VALUES = 2**20, 2**23
# On the host they are at most this part of X.
HOST_PARTS = 16


@dataclass(frozen=True)
class Scan:
    """`origin`, (p,), is a point amid the rows, None for sparse rows; `finite` says whether their sum is."""

    origin: Array | None
    finite: bool


def scan_host(X: RowReader) -> Scan:
    """Look at a dense matrix that the host reads; one pass."""
    (n, p), total = X.shape, 0.0
    if X.dtype.kind == "f":  # integers and bools are finite
        with np.errstate(over="ignore", invalid="ignore"):
            for block in row_blocks(slice(0, n), max(1, min(HOST_VALUES // max(p, 1), n // HOST_PARTS))):
                total += float(X.take(block).sum(dtype=np.float64))
    return Scan(middle(X, np.empty((n, 0)), slice(0, n)), math.isfinite(total))


def scan_device(X: Any) -> tuple[Array, bool]:
    """The origin and the finiteness of a dense matrix on a device; one pass, one synchronisation."""
    xp, dtype, (n, p) = array_namespace(X), float_dtype(X), X.shape
    index = evenly_spread(n)
    sample = xp.reshape(xp.astype(xp.take(X, to_device_of(index, X, label="indices"), axis=0), dtype), (-1,))
    total = xp.zeros_like(sample[:1])
    n = n if xp.isdtype(X.dtype, "real floating") else 0  # integers and bools are finite
    with np.errstate(over="ignore", invalid="ignore"):
        for block in row_blocks(slice(0, n), block_size(DEVICE_VALUES // p)):
            total += xp.sum(X[block, :], dtype=dtype)
    found = to_host(xp.concat([sample, total]), label="rows of a sample").astype(np.float64, copy=False)
    return median_row(found[:-1].reshape(-1, p)), math.isfinite(found[-1])
