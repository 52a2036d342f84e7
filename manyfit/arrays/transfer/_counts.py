"""Counters of transfers between host and device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from manyfit._config import set_in_block

OTHER = "other"
"""The label of transfers without a label."""


class Crossings(NamedTuple):
    """Transfers with one label: arrays and bytes copied to a device, arrays and bytes copied to the host.

    Each array copied to the host is one synchronisation: the host waits for the device.
    """

    to_device: int = 0
    bytes_to_device: int = 0
    to_host: int = 0
    bytes_to_host: int = 0

    def plus(self, other: Crossings) -> Crossings:
        """The sum of both, field by field."""
        return Crossings(*(one + more for one, more in zip(self, other, strict=True)))


@dataclass
class Transfers:
    """Counts of the transfers between host and device in a ``with transfers()`` block.

    Parameters
    ----------
    bytes_to_device : int
        Bytes copied from the host to a device.
    bytes_to_host : int
        Bytes copied from a device to the host.
    synchronisations : int
        How often the host waited for a device: once for each array copied to the host.
    by_label : dict of str to Crossings
        The same counts by label; the numbers above are sums over all labels.
    """

    bytes_to_device: int = 0
    bytes_to_host: int = 0
    synchronisations: int = 0
    by_label: dict[str, Crossings] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return (
            f"{self.bytes_to_device:,} bytes to device, {self.bytes_to_host:,} bytes to host, "
            f"{self.synchronisations:,} synchronisations"
        )


_watching: ContextVar[tuple[Transfers, ...]] = ContextVar("manyfit_transfers", default=())
_label: ContextVar[str] = ContextVar("manyfit_transfer_label", default=OTHER)
# One lock for all counters, because a counter with a lock of its own could not be pickled with its report. A
# transfer costs microseconds at least, so nothing waits here.
_lock = threading.Lock()


@contextmanager
def transfers() -> Iterator[Transfers]:
    """Count the transfers between host and device inside a ``with`` block.

    Nested blocks all count; the counter can be read at any time, also after its block.

    Yields
    ------
    Transfers
        The counter.

    Notes
    -----
    Only manyfit's own calls of `to_device` and `to_host` count. Not counted are

    - transfers inside estimators, scorers and array libraries, as for ``float(x)`` or ``x.get()``;
    - waits inside an upload, and copies between two devices of one library, which do not pass the host;
    - other processes;
    - threads that start inside the block, unless they run in a copy of its context
      (``contextvars.copy_context().run``), which then count into the same counter.

    Examples
    --------
    >>> import numpy as np
    >>> from manyfit.arrays import to_host, transfers
    >>> with transfers() as counter:
    ...     _ = to_host(np.ones(1000))  # lies on the host already
    >>> counter
    Transfers(bytes_to_device=0, bytes_to_host=0, synchronisations=0)
    """
    counter = Transfers()
    with set_in_block(_watching, (*_watching.get(), counter)):
        yield counter


def label_transfers(label: str) -> AbstractContextManager[str]:
    """Label the transfers inside a ``with`` block; labels of calls and of inner blocks go first."""
    return set_in_block(_label, label)


def count(*, to_device: int | None = None, to_host: int | None = None, label: str | None = None) -> None:
    """Add one transfer to every counter whose block is open in this context."""
    one = Crossings(int(to_device is not None), to_device or 0, int(to_host is not None), to_host or 0)
    label = label or _label.get()
    with _lock:
        for counter in _watching.get():
            counter.bytes_to_device += one.bytes_to_device
            counter.bytes_to_host += one.bytes_to_host
            counter.synchronisations += one.to_host
            counter.by_label[label] = one.plus(counter.by_label.get(label, Crossings()))
