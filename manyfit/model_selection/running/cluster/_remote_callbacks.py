"""Callbacks of a search whose fits are made on workers: their messages return with the results.

scikit-learn's callbacks send messages to the process of the search by a socket of its machine. A worker on
another machine cannot reach it. So the worker keeps the messages of a fit, and the search delivers them.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from manyfit._compat import callbacks_of, is_message_handle, keep_messages

Message = tuple[str, Any]

# Callbacks of these modules do all their work by messages.
MESSAGING_MODULES = ("sklearn.callback.",)


def can_run_remotely(search: Any) -> bool:
    """Whether all callbacks of a search work by messages; others may hold values that the user reads."""
    return all(
        _handles(callback) and type(callback).__module__.startswith(MESSAGING_MODULES)
        for callback in callbacks_of(search)
    )


def _handles(callback: Any) -> dict[str, Any]:
    """The attributes of a callback that hold the addresses of its messages."""
    found = {}
    for name, value in getattr(callback, "__dict__", {}).items():
        several = isinstance(value, Mapping) and value and all(map(is_message_handle, value.values()))
        if several or is_message_handle(value):
            found[name] = value
    return found


@dataclass
class RemoteCallbacks:
    """The callbacks of a search as workers are sent them, each with the attributes that hold its addresses.

    A callback that cannot reach its address may have changed these attributes while it was unpickled.
    """

    handles: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)

    @classmethod
    def from_search(cls, search: Any) -> "RemoteCallbacks":
        """The callbacks of a running search."""
        return cls([(callback, _handles(callback)) for callback in callbacks_of(search)])

    @contextmanager
    def collect(self) -> Iterator[list[Message]]:
        """Collect messages; at the end they are in the list, each with its address."""
        messages: list[Message] = []
        if not self.handles:
            yield messages
            return
        addresses: set[str] = set()
        for callback, handles in self.handles:
            vars(callback).update(handles)
            for handle in handles.values():
                several = handle.values() if isinstance(handle, Mapping) else [handle]
                addresses.update(one.address for one in several)
        for address in sorted(addresses):
            _begin(address)
        try:
            yield messages
        finally:
            for address in sorted(addresses):
                messages += [(address, message) for message in _end(address)]


# Messages on this worker by address, and the number of fits that send some: threads share one list, and each
# fit that ends takes its content.
_held_messages: dict[str, tuple[list[Any], int]] = {}
_lock = threading.Lock()


def _begin(address: str) -> None:
    with _lock:
        said, n = _held_messages.get(address, ([], 0))
        if n == 0 and not keep_messages(address, said.append):
            return  # a worker in the process of the search, whose messages arrive at once
        _held_messages[address] = said, n + 1


def _end(address: str) -> list[Any]:
    with _lock:
        if address not in _held_messages:
            return []
        said, n = _held_messages[address]
        messages, said[:] = list(said), []
        if n == 1:
            del _held_messages[address]
            keep_messages(address, None)
        else:
            _held_messages[address] = said, n - 1
        return messages
