"""The device of the data: CuPy's, otherwise torch's, or a stand-in that tests the command."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import psutil

from benchmarks.gpu._memory import Memory, device_memory, no_memory
from manyfit.arrays import to_device

# Set by the option ``--imitate``, and inherited by the processes of the parts.
IMITATION = "MANYFIT_BENCHMARKS_IMITATE"


class NoDevice(Exception):
    """No array library can use a GPU; the message says what was tried."""


@dataclass(frozen=True)
class Place:
    """A library and its device.

    ``memory`` gives the bytes there; ``wait`` returns when the device has finished.
    """

    library: str
    name: str
    device: Any
    memory: Memory
    wait: Callable[[], None]
    imitated: bool = False

    def put(self, array: Any) -> Any:
        """Copy a host array to the device, and wait for it."""
        there = to_device(array, self.device, import_module(self.library))
        self.wait()
        return there


def find_place() -> Place:
    """Return the device for the data.

    Raises
    ------
    NoDevice
        If there is no GPU.
    """
    imitated = os.environ.get(IMITATION)
    if imitated:
        return _imitation(imitated)
    reasons = []
    for find in (_cupy, _torch):
        try:
            return find()
        except Exception as error:  # a missing library, a driver that is missing or too old
            reasons.append(f"{find.__name__[1:]}: {_first_line(error)}")
    raise NoDevice(
        "There is no GPU here that CuPy or torch can use, and these benchmarks are about nothing else "
        f"({'; '.join(reasons)}). docs/gpu-testing.md says what they need."
    )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


def _cupy() -> Place:
    cupy = import_module("cupy")
    runtime = cupy.cuda.runtime
    if not runtime.getDeviceCount():
        raise NoDevice("no CUDA device")
    device = cupy.cuda.Device()
    name = runtime.getDeviceProperties(device.id)["name"].decode()
    return Place("cupy", name, device, device_memory("cupy"), device.synchronize)


def _torch() -> Place:
    cuda = import_module("torch").cuda
    if not cuda.is_available():
        raise NoDevice("no CUDA device")
    return Place("torch", cuda.get_device_name(), "cuda", device_memory("torch"), cuda.synchronize)


def _imitation(library: str) -> Place:
    device = import_module(library).Device("device1") if library == "array_api_strict" else "cpu"

    def free() -> int:
        return int(psutil.virtual_memory().available)

    name = f"no device: {library} in its place"
    return Place(library, name, device, no_memory(free), lambda: None, imitated=True)
