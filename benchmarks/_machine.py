"""The machine and the versions that results were measured with."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import threadpool_info

_PACKAGES = (
    "manyfit",
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "dask",
    "distributed",
    "dask-ml",
    "himalaya",
    "cvmatrix",
)


def machine() -> dict[str, Any]:
    """Return processor, cores, memory and the thread pools of the numerical libraries, as they are set."""
    pools = [
        {key: pool.get(key) for key in ("user_api", "internal_api", "version", "architecture", "num_threads")}
        for pool in threadpool_info()
    ]
    return {
        "processor": _processor(),
        "cores": joblib.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "thread_pools": pools,
    }


def blas_threads() -> int | None:
    """Return how many threads a product of matrices may use now, None if no library says so."""
    numbers = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(numbers, default=None)


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of every library that takes part, None if it is missing."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
