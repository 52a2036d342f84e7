"""A second attempt, in smaller blocks, for work that ran out of device memory."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from manyfit.arrays._device_memory import free_device_memory, is_out_of_memory, smaller_blocks
from manyfit.exceptions import Unsupported

T = TypeVar("T")


def retry_in_smaller_blocks(work: Callable[[], T], what: Callable[[], str]) -> T:
    """Run ``work()``; if memory runs out, free unused memory and run it once more in smaller blocks.

    Raises `Unsupported` if memory runs out again; ``what()`` names the work in its text.
    """
    with suppress(_OutOfMemory):
        return _run(work)
    # Outside of any handler no traceback keeps the failed attempt's arrays alive.
    free_device_memory()
    with smaller_blocks():
        try:
            return _run(work)
        except _OutOfMemory as error:
            raise Unsupported(f"{what()} ran out of memory, also in smaller blocks: {error}") from None


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
