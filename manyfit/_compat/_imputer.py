"""KNNImputer that keeps the distances between rows, which no number of neighbours changes."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import KNNImputer
from sklearn.metrics import pairwise_distances_chunked

from manyfit._compat._nested import wrap_output

__all__ = ["ImputerWithMemory", "impute"]

Array = NDArray[Any]
# The distances that a fit keeps take at most so many bytes.
MOST_BYTES = 2**30


class DistanceMemory:
    """Keeps the distances of some rows to the training rows, in one buffer, as long as they have room.

    A copy of it has no room: it keeps nothing.
    """

    def __init__(self, room: int) -> None:
        self._buffer, self._used = np.empty(room, dtype=np.uint8), 0
        self._lock, self._found = threading.Lock(), dict[Any, list[Array]]()

    def chunks(
        self, X: Array, Y: Array, *, reduce_func: Callable[[Array, int], None], **options: Any
    ) -> Iterator[None]:
        """Take the place of ``pairwise_distances_chunked`` in ``KNNImputer.transform`` for one `Y`."""
        key = X.shape, X.dtype.str, hashlib.sha256(X.tobytes()).digest()
        known, kept, start = self._found.get(key), list[Array](), 0
        for chunk in pairwise_distances_chunked(X, Y, **options) if known is None else known:
            if known is None and (room := self._room_for(chunk)) is not None:
                room[...] = chunk
                kept.append(room)
            reduce_func(chunk, start)
            start += len(chunk)
            yield
        if known is None and sum(map(len, kept)) == start:
            self._found[key] = kept

    def _room_for(self, chunk: Array) -> Array | None:
        with self._lock:
            start, end = self._used, self._used + chunk.nbytes
            if end > self._buffer.size:
                return None
            self._used = end
        return self._buffer[start:end].view(chunk.dtype).reshape(chunk.shape)

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return DistanceMemory, (0,)


class ImputerWithMemory(KNNImputer):  # type: ignore[misc]
    """KNNImputer whose fit may serve any `n_neighbors` and `weights`, with one set of distances."""

    def fit(self, X: Any, y: Any = None) -> "ImputerWithMemory":
        """Fit, and make room for the distances of the training rows, and of as many others."""
        super().fit(X, y)
        gaps = self._mask_fit_X[:, self._valid_mask].any(axis=1).sum()
        self.distances_ = DistanceMemory(min(MOST_BYTES, 2 * 8 * int(gaps) * len(self._fit_X)))
        return self


def impute(fitted: Any, memory: DistanceMemory, X: Any) -> Any:
    """``fitted.transform(X)`` by scikit-learn's own code, with the distances of a memory."""
    original = KNNImputer.transform.__wrapped__
    names = original.__globals__ | {"pairwise_distances_chunked": memory.chunks}
    output = FunctionType(original.__code__, names, closure=original.__closure__)(fitted, X)
    return wrap_output(output, X, fitted)
