"""The size of blocks of work, and a second attempt in smaller ones for work that ran out of memory."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TypeVar

from manyfit._config import set_in_block
from manyfit.exceptions import Unsupported

T = TypeVar("T")

_divisor: ContextVar[int] = ContextVar("manyfit_block_divisor", default=1)

# Blocks are smaller by this factor after the device ran out of memory.
SMALLER = 16


def block_size(n: int) -> int:
    """The size of a block that is usually `n`, in any unit: smaller on a second attempt, at least 1."""
    return max(1, n // _divisor.get())


def retry_in_smaller_blocks(work: Callable[[], T], what: Callable[[], str]) -> T:
    """Run ``work()``; if memory runs out, free unused memory and run it once more in smaller blocks.

    Raises `Unsupported` if memory runs out again; ``what()`` names the work in its text.
    """
    with suppress(_OutOfMemory):
        return _run(work)
    # Outside of any handler no traceback keeps the failed attempt's arrays alive.
    _free_device_memory()
    with set_in_block(_divisor, _divisor.get() * SMALLER):
        try:
            return _run(work)
        except _OutOfMemory as error:
            raise Unsupported(f"{what()} ran out of memory, also in smaller blocks: {error}") from None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory ran out: CuPy's, torch's, RMM's or Python's own."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _free_device_memory() -> None:
    """Return the device memory that CuPy and torch keep without using it."""
    gc.collect()
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


class _OutOfMemory(Exception):
    """Memory ran out; the text is the library's, which says how much was requested."""


def _run(work: Callable[[], T]) -> T:
    try:
        return work()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        text = str(error) or type(error).__name__
    raise _OutOfMemory(text)
