"""What the driver sees of a call: bytes that cross, and waits; of anybody's code, by torch's profiler.

manyfit counts its own crossings. This counts all of a process, of cuML's and scikit-learn's too, and so
shows as well what manyfit does not count.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Calls that return when the device is done. Copies to pageable memory do, too: they are not among these.
_WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy")


def seen(call: Callable[[], Any]) -> dict[str, int] | None:
    """Return what was seen of a call, or None where nothing can see it."""
    if find_spec("torch") is None:
        return None
    torch = import_module("torch")
    if not torch.cuda.is_available():
        return None
    profiler = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "trace.json"
        profile.export_chrome_trace(str(path))
        return read_trace(path)


def read_trace(path: Path) -> dict[str, int]:
    """Return bytes and waits of a trace as torch writes it; the wait at its end is ours."""
    found = {"seen_to_device": 0, "seen_to_host": 0, "seen_waits": -1}
    for event in json.loads(path.read_text())["traceEvents"]:
        kind, name = event.get("cat"), str(event.get("name", ""))
        if kind == "gpu_memcpy":
            way = "seen_to_device" if "HtoD" in name else "seen_to_host" if "DtoH" in name else None
            if way is not None:
                found[way] += int(event.get("args", {}).get("bytes", 0))
        elif kind in ("cuda_runtime", "cuda_driver") and name.partition("_v")[0] in _WAITS:
            found["seen_waits"] += 1
    return {**found, "seen_waits": max(0, found["seen_waits"])}
