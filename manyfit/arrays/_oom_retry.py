"""Work on a device that is tried once more, in smaller blocks, where there was no memory for it."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from manyfit.arrays._device_memory import free_device_memory, is_out_of_memory, smaller_blocks
from manyfit.exceptions import Unsupported

T = TypeVar("T")


def retry_in_smaller_blocks(work: Callable[[], T], what: Callable[[], str]) -> T:
    """Do some work; where memory is short, free what is not used and do it once more in smaller blocks.

    Parameters
    ----------
    work : callable
        Can be done twice.
    what : callable
        What it is called where there is not memory enough for that either.

    Returns
    -------
    object
        What it returns.

    Raises
    ------
    Unsupported
        If memory is short the second time, too; the library says how much was asked for.
    """
    with suppress(_Short):
        return _tried(work)
    # Only here, outside of any handler, is nothing kept alive by the traceback.
    free_device_memory()
    with smaller_blocks():
        try:
            return _tried(work)
        except _Short as short:
            raise Unsupported(f"{what()} found no memory, nor in smaller blocks: {short}") from None


class _Short(Exception):
    """There was no memory; the text says how much was asked for."""


def _tried(work: Callable[[], T]) -> T:
    try:
        return work()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        said = str(error) or type(error).__name__
    raise _Short(said)
