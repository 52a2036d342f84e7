"""How much of a device's memory a step may take, and what is done where there is none left."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_divisor: ContextVar[int] = ContextVar("manyfit_block_divisor", default=1)

# What blocks are divided by once the device had no memory for them.
SMALLER = 16


def block_size(n: int) -> int:
    """How large a block on a device may be here.

    Parameters
    ----------
    n : int
        What it is as a rule, in any unit.

    Returns
    -------
    int
        A part of it inside of `smaller_blocks`; at least 1.
    """
    return max(1, n // _divisor.get())


@contextmanager
def smaller_blocks() -> Iterator[None]:
    """Within it blocks on a device are `SMALLER` times smaller.

    Yields
    ------
    None
        Nothing.
    """
    token = _divisor.set(_divisor.get() * SMALLER)
    try:
        yield
    finally:
        _divisor.reset(token)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory could not be had: CuPy's, torch's, RMM's, or Python's own.

    Parameters
    ----------
    error : BaseException
        Any.

    Returns
    -------
    bool
        By its type; of RMM's, which is a `MemoryError` as CuPy's is, too.
    """
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def free_device_memory() -> None:
    """Give back what the libraries that are loaded keep of the device's memory without using it."""
    gc.collect()
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
