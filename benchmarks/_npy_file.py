"""A matrix in a file that is read and not mapped, so that its pages are not memory of this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


class File:
    """The matrix of a .npy file, read by row; it counts the bytes."""

    ndim = 2

    def __init__(self, path: Path) -> None:
        given = np.load(path, mmap_mode="r")
        self.shape, self.dtype = given.shape, given.dtype
        self._path, self._offset, self.bytes_read = path, given.offset, 0

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        rows, columns = index if isinstance(index, tuple) else (index, slice(None))
        (start, stop, _), p = rows.indices(self.shape[0]), self.shape[1]
        self.bytes_read += (stop - start) * p * self.dtype.itemsize
        at = self._offset + start * p * self.dtype.itemsize
        found = np.fromfile(self._path, self.dtype, (stop - start) * p, offset=at)
        return found.reshape(stop - start, p)[:, columns]
