"""Counts the bytes that the processes of a cluster write to their connections."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

# Of this process: what its connections wrote, by who wrote it and what.
_written: Counter[str] = Counter()
# Messages that carry data to the scheduler, or to a worker.
_WITH_DATA = ("scatter", "update_data")


@dataclass(frozen=True)
class Sent:
    """Bytes that were written to connections.

    ``data`` was scattered by the client; ``messages`` is the rest of what the client wrote: graphs, requests.
    ``everyone`` is what all processes wrote: the client, the scheduler, and workers to each other as well.
    """

    data: int
    messages: int
    everyone: int

    def __sub__(self, other: Sent) -> Sent:
        return Sent(self.data - other.data, self.messages - other.messages, self.everyone - other.everyone)


class Wire:
    """What a cluster has written since it is watched."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def sent(self) -> Sent:
        """The bytes so far. Asking for it costs some hundred."""
        workers = sum(self._client.run(written).values())
        return Sent(_written["data"], _written["messages"], _written.total() + workers)


@contextmanager
def watched(client: Any) -> Iterator[Wire]:
    """Count on a client, its scheduler if that is in this process, and its workers."""
    client.run(_count)
    restore = _count(client)
    try:
        yield Wire(client)
    finally:
        restore()


def written() -> int:
    """What the connections of this process wrote."""
    return _written.total()


def _count(client: Any = None) -> Any:
    """Have the connections of this process counted from now on; returns what ends that."""
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
    return None if client is None else patch.stop  # a worker is watched until it ends


def _who(client: Any, comm: Any, msg: Any) -> str:
    if client is None or not _of_client(client, comm):
        return "others"
    return "data" if isinstance(msg, dict) and msg.get("op") in _WITH_DATA else "messages"


def _of_client(client: Any, comm: Any) -> bool:
    stream = getattr(client.scheduler_comm, "comm", None)
    return comm is stream or any(comm in comms for comms in client.rpc.occupied.values())
