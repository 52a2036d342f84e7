"""Counts of the bytes that the processes of a cluster write to their connections."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

# Bytes that this process wrote, by writer and kind.
_written: Counter[str] = Counter()
# Messages with data for the scheduler or a worker.
_WITH_DATA = ("scatter", "update_data")


@dataclass(frozen=True)
class Sent:
    """Bytes written to connections.

    ``data`` was scattered by the client; ``messages`` is the rest of what the client wrote: graphs, requests.
    ``everyone`` is what all processes wrote: the client, the scheduler, and workers to each other as well.
    """

    data: int
    messages: int
    everyone: int

    def __sub__(self, other: Sent) -> Sent:
        return Sent(self.data - other.data, self.messages - other.messages, self.everyone - other.everyone)


class Wire:
    """Counter of the bytes that a cluster writes."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def sent(self) -> Sent:
        """The bytes so far. This call sends some hundred bytes itself."""
        workers = sum(self._client.run(written).values())
        return Sent(_written["data"], _written["messages"], _written.total() + workers)


@contextmanager
def watched(client: Any) -> Iterator[Wire]:
    """Count the bytes of a client, its workers, and its scheduler if it is in this process."""
    client.run(_count)
    restore = _count(client)
    try:
        yield Wire(client)
    finally:
        restore()


def written() -> int:
    """The bytes that the connections of this process wrote."""
    return _written.total()


def _count(client: Any = None) -> Any:
    """Start counting in this process; return a function that stops it."""
    from distributed.comm.tcp import TCP

    _written.clear()
    write = TCP.write

    @functools.wraps(write)
    async def counted(self: Any, msg: Any, *args: Any, **kwargs: Any) -> Any:
        n_bytes = await write(self, msg, *args, **kwargs)
        _written[_who(client, self, msg)] += n_bytes
        return n_bytes

    patch = mock.patch.object(TCP, "write", counted)
    patch.start()
    return None if client is None else patch.stop  # counting on a worker ends with the worker


def _who(client: Any, comm: Any, msg: Any) -> str:
    if client is None or not _of_client(client, comm):
        return "others"
    return "data" if isinstance(msg, dict) and msg.get("op") in _WITH_DATA else "messages"


def _of_client(client: Any, comm: Any) -> bool:
    stream = getattr(client.scheduler_comm, "comm", None)
    return comm is stream or any(comm in comms for comms in client.rpc.occupied.values())
