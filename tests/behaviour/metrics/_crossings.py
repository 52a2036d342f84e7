"""What makes the host wait for a device, counted: array-api-strict's arrays, watched."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import array_api_strict
import numpy as np
import pytest

DEVICE = array_api_strict.Device("device1")
HOST = array_api_strict.Device("CPU_DEVICE")
# Each hands values over to Python or to another library, or has the host wait for one of them.
WATCHED = (
    "__array__",
    "__buffer__",
    "__dlpack__",
    "__float__",
    "__bool__",
    "__int__",
    "__index__",
    "__complex__",
    "to_device",
)
Array = type(array_api_strict.empty(0))


@contextmanager
def crossings() -> Iterator[Counter[str]]:
    """Count by name, while a block runs, what arrays were asked that makes the host wait.

    Shapes that depend on values, which make it wait too, are refused.
    """
    counter: Counter[str] = Counter()
    kept = {name: getattr(Array, name) for name in WATCHED if hasattr(Array, name)}

    def watched(name: str) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self.device != HOST:
                counter[name] += 1
                counter["bytes"] += (
                    int(np.prod(self.shape)) * np.dtype(str(self.dtype).rpartition(".")[2]).itemsize
                )
            return kept[name](self, *args, **kwargs)

        return method

    for name in kept:
        setattr(Array, name, watched(name))
    try:
        with array_api_strict.ArrayAPIStrictFlags(data_dependent_shapes=False):
            yield counter
    finally:
        for name, method in kept.items():
            setattr(Array, name, method)


def there(values: Any, dtype: Any = None) -> Any:
    """An array on the device."""
    return array_api_strict.asarray(np.asarray(values, dtype), device=DEVICE, copy=True)


def here(array: Any) -> np.ndarray:
    """An array back on the host, uncounted outside of `crossings`."""
    return np.asarray(array.to_device(HOST))


@contextmanager
def memory_there(*known: Any) -> Iterator[list[int]]:
    """Bytes of arrays on the device beside those that are known: now, and at most; while a block runs."""
    used, owners = [0, 0], {}
    apart = {id(_owner(array)) for array in known}
    new = Array._new.__func__

    def freed(key: int) -> None:
        used[0] -= owners.pop(key)

    def made(cls: Any, x: Any, /, device: Any) -> Any:
        array = new(cls, x, device)
        owner = _owner(array)
        if device == DEVICE and id(owner) not in owners and id(owner) not in apart:
            owners[id(owner)] = owner.nbytes
            weakref.finalize(owner, freed, id(owner)).atexit = False
            used[0] += owner.nbytes
            used[1] = max(used)
        return array

    Array._new = classmethod(made)
    try:
        yield used
    finally:
        Array._new = classmethod(new)


def _owner(array: Any) -> np.ndarray:
    """Whose memory it is: that of slices is another's."""
    owner = array._array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def refusal(function: Any, *args: Any, **options: Any) -> str:
    """What the ValueError of a call says."""
    with pytest.raises(ValueError) as refused:
        function(*args, **options)
    return str(refused.value)
