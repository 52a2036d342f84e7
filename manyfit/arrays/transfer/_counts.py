"""Counters of what crosses the border between host and device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

OTHER = "other"
"""The label of a crossing that nobody has named."""


class Crossings(NamedTuple):
    """Crossings for one reason.

    Attributes
    ----------
    to_device : int
        Arrays copied from the host's memory to a device.
    bytes_to_device : int
        Their bytes.
    to_host : int
        Arrays copied from a device to the host's memory, each of which makes the host wait once.
    bytes_to_host : int
        Their bytes.
    """

    to_device: int = 0
    bytes_to_device: int = 0
    to_host: int = 0
    bytes_to_host: int = 0

    def plus(self, other: Crossings) -> Crossings:
        """The crossings of both.

        Parameters
        ----------
        other : Crossings
            Made for the same reason.

        Returns
        -------
        Crossings
            Their sums.
        """
        return Crossings(*(one + more for one, more in zip(self, other, strict=True)))


@dataclass
class Transfers:
    """Count of what crossed the border between host and device while it was watched.

    Parameters
    ----------
    bytes_to_device : int
        Bytes copied from the host's memory to a device.
    bytes_to_host : int
        Bytes copied from a device to the host's memory.
    synchronisations : int
        Times that the host waited for a device to finish, one for each array copied to it.
    by_label : dict of str to Crossings
        The same by the reason of each crossing; the numbers above are the sums over all labels.
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
# One lock for all counters: a crossing costs microseconds at least, so nothing waits here, and a counter that
# held its own could not be pickled with the report that it ends in.
_lock = threading.Lock()


@contextmanager
def transfers() -> Iterator[Transfers]:
    """Count what crosses between host and device inside a ``with`` block.

    Blocks nest: what an inner block counts, the outer ones count too.

    Yields
    ------
    Transfers
        Counter that grows while the block runs and may be read at any time, also after it.

    Notes
    -----
    Counted are the calls of `to_device` and `to_host`, manyfit's own crossings. What it cannot see:

    - crossings that others make: an estimator or a scorer that copies, and ``float(x)``, ``bool(x)``,
      ``if x:`` or ``x.get()`` on a device array, each of which makes the host wait;
    - waits inside an upload, and copies between two devices of one library, which do not touch the host;
    - other processes;
    - threads started inside the block, unless they run in a copy of its context
      (``contextvars.copy_context().run``); then all threads count into the same counter without losing any.
      In return, two threads that each open a block of their own do not see each other's crossings.

    Examples
    --------
    >>> import numpy as np
    >>> from manyfit.arrays import to_host, transfers
    >>> with transfers() as crossed:
    ...     _ = to_host(np.ones(1000))  # is at home already
    >>> crossed
    Transfers(bytes_to_device=0, bytes_to_host=0, synchronisations=0)
    """
    counter = Transfers()
    token = _watching.set((*_watching.get(), counter))
    try:
        yield counter
    finally:
        _watching.reset(token)


@contextmanager
def label_transfers(label: str) -> Iterator[None]:
    """Label what crosses inside a ``with`` block, unless a call or an inner block names its own label.

    Parameters
    ----------
    label : str
        Why arrays cross, in a word or two: ``"X"``, ``"scores"``, ``"fit of SVC"``.

    Yields
    ------
    None
        Nothing.
    """
    token = _label.set(label)
    try:
        yield
    finally:
        _label.reset(token)


def count(*, to_device: int | None = None, to_host: int | None = None, label: str | None = None) -> None:
    """Add the bytes of one crossing to every counter whose block is open in this context."""
    one = Crossings(int(to_device is not None), to_device or 0, int(to_host is not None), to_host or 0)
    label = label or _label.get()
    with _lock:
        for counter in _watching.get():
            counter.bytes_to_device += one.bytes_to_device
            counter.bytes_to_host += one.bytes_to_host
            counter.synchronisations += one.to_host
            counter.by_label[label] = one.plus(counter.by_label.get(label, Crossings()))
