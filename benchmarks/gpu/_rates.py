"""Measured peak rates of the device: memory copies, matrix products, copies from the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

import array_api_compat as compat
import numpy as np

from benchmarks._floor import Work
from benchmarks.gpu._place import Place
from manyfit.arrays import to_host

_ROUNDS = 5


@dataclass(frozen=True)
class Rates:
    """Bytes per second and floating point operations per second.

    ``copy`` counts bytes read and bytes written. ``product`` is by dtype.
    """

    copy: float
    from_host: float
    to_host: float
    product: dict[str, float]

    def floor(self, work: Work, dtype: str) -> float:
        """Return the fewest seconds that the bytes or the operations of some work can take."""
        return max(work.bytes / self.copy, work.flops / self.product[dtype])


def measure_rates(place: Place, quick: bool) -> Rates:
    """Measure the best of a few rounds; takes about a second."""
    n_bytes, side = (2**20, 64) if quick else (2**30, 8192)
    host = np.ones(n_bytes // 8)
    there = place.put(host)
    xp = compat.array_namespace(there)
    copying = _best(place, lambda: xp.asarray(there, copy=True))
    going = _best(place, lambda: place.put(host))
    coming = _best(place, lambda: to_host(there))
    products = {}
    for dtype in ("float32", "float64"):
        square = place.put(np.ones((side, side), dtype=dtype))
        products[dtype] = 2.0 * side**3 / _best(place, lambda square=square: square @ square)
    return Rates(2 * n_bytes / copying, n_bytes / going, n_bytes / coming, products)


def _best(place: Place, call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        place.wait()
        start = time.perf_counter()
        call()
        place.wait()
        best = min(best, time.perf_counter() - start)
    return best


def library_versions() -> dict[str, str | None]:
    """Return the versions of the device's libraries, None if one is missing, without importing any."""
    packages = metadata.packages_distributions()
    found: dict[str, str | None] = {}
    for name in ("cupy", "torch", "cuml", "cudf", "array_api_strict"):
        owners = packages.get(name)
        found[name] = metadata.version(owners[0]) if owners else None
    return found
