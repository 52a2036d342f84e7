"""Transferred bytes and waits of a call, as torch's profiler sees them in the driver.

manyfit counts its own transfers. This counts those of the whole process, cuML's and scikit-learn's
included, and so shows transfers that manyfit does not count.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Calls that return when the device is done. Copies to pageable memory also wait, but are not among these.
_WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy")


def seen(call: Callable[[], Any]) -> dict[str, int] | None:
    """Profile a call; return None if there is no profiler."""
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
    """Return bytes and waits of a trace of torch, without the final wait, which is the profiler's."""
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
