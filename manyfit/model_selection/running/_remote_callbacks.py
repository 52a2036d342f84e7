"""Callbacks of a search whose fits are made on workers: what they say comes back with the results.

scikit-learn's callbacks send messages to the process of the search by a socket of its machine. A worker on
another one has no way to it. So the worker keeps the messages of a fit, and the search delivers them.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from manyfit._compat import callbacks_of, deliver_message, is_message_handle, keep_messages

Message = tuple[str, Any]

# Where classes are defined whose objects say by messages all that they have to say.
BY_MESSAGES = ("sklearn.callback.",)


def travel(search: Any) -> bool:
    """Whether all callbacks of a search do what they do by messages; others may hold what the user reads."""
    return all(
        _handles(callback) and type(callback).__module__.startswith(BY_MESSAGES)
        for callback in callbacks_of(search)
    )


def _handles(callback: Any) -> dict[str, Any]:
    """The attributes of a callback that say where its messages go."""
    found = {}
    for name, value in getattr(callback, "__dict__", {}).items():
        several = isinstance(value, Mapping) and value and all(map(is_message_handle, value.values()))
        if several or is_message_handle(value):
            found[name] = value
    return found


@dataclass
class Callbacks:
    """The callbacks of a search, on their way to the workers.

    Attributes
    ----------
    handles : list of (callback, dict)
        Each with the attributes that say where its messages go: one that arrives where it can reach nobody
        may have changed them.
    """

    handles: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)

    @classmethod
    def of(cls, search: Any) -> "Callbacks":
        """Those of a search that has begun."""
        return cls([(callback, _handles(callback)) for callback in callbacks_of(search)])

    @contextmanager
    def heard(self) -> Iterator[list[Message]]:
        """Within it messages are kept; afterwards they are in the list, with where each is to go."""
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


def deliver_all(messages: Sequence[Message]) -> None:
    """Let callbacks of this process have what theirs on workers said."""
    for address, message in messages:
        deliver_message(address, message)


# What was said on this worker, by address, and how many fits are at it: those of several threads say it to
# one place, and whichever ends takes what is there.
_kept: dict[str, tuple[list[Any], int]] = {}
_lock = threading.Lock()


def _begin(address: str) -> None:
    with _lock:
        said, n = _kept.get(address, ([], 0))
        if n == 0 and not keep_messages(address, said.append):
            return  # a worker in the process of the search, which hears all at once
        _kept[address] = said, n + 1


def _end(address: str) -> list[Any]:
    with _lock:
        if address not in _kept:
            return []
        said, n = _kept[address]
        messages, said[:] = list(said), []
        if n == 1:
            del _kept[address]
            keep_messages(address, None)
        else:
            _kept[address] = said, n - 1
        return messages
