"""Limits on the device memory that one block of work takes, and freeing memory that libraries keep."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_divisor: ContextVar[int] = ContextVar("manyfit_block_divisor", default=1)

# Blocks are smaller by this factor after the device ran out of memory.
SMALLER = 16


def block_size(n: int) -> int:
    """The size of a block that is usually `n`, in any unit: smaller inside `smaller_blocks`, at least 1."""
    return max(1, n // _divisor.get())


@contextmanager
def smaller_blocks() -> Iterator[None]:
    """Make `block_size` smaller by the factor `SMALLER` inside a ``with`` block."""
    token = _divisor.set(_divisor.get() * SMALLER)
    try:
        yield
    finally:
        _divisor.reset(token)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory ran out: CuPy's, torch's, RMM's or Python's own."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def free_device_memory() -> None:
    """Return the device memory that CuPy and torch keep without using it."""
    gc.collect()
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
