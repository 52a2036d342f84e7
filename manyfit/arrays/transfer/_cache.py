"""A cache that moves each array between host and device only once."""

import weakref
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from manyfit._config import set_in_block
from manyfit.arrays._namespace import Array, array_namespace, device
from manyfit.arrays.transfer._containers import container_kind, container_to_host, is_xp_array
from manyfit.arrays.transfer._host_device import to_device


def to_device_of(array: Any, like: Array, *, label: str | None = None) -> Any:
    """Move an array to the library and device of another one; None stays None."""
    if array is None:
        return None
    return to_device(array, device(like), array_namespace(like), label=label)


class TransferCache:
    """Copies each array once, to the host or to the device of `target`; to the host, frames too.

    Values that need no copy come back as they are. With `weak` a copy lives as long as its array and is
    read-only, because several estimators read it. A pickle holds no copies.
    """

    def __init__(self, target: Array | None = None, *, weak: bool = False) -> None:
        self._target, self._weak = target, weak
        # By identity; the original, or a weak reference, is kept so that no other array gets its identity.
        self._copies: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any, label: str | None = None) -> Any:
        """The value where it is needed; `label` names the transfer if this call makes one."""
        if not self._moves(value):
            return value
        original, copy = self._copies.get(id(value), (None, None))
        if (original() if self._weak and original is not None else original) is value:
            return copy
        if self._target is None:
            return self.add(value, container_to_host(value, label=label))
        return self.add(value, to_device_of(value, self._target, label=label))

    def add(self, array: Array, copy: Array) -> Array:
        """Keep a copy that is known already, and return it as the cache returns it."""
        key = id(array)
        if not self._weak:
            self._copies[key] = array, copy
            return copy
        copy, copies = copy.view(), self._copies
        copy.flags.writeable = False

        def remove(dead: weakref.ref[Any]) -> None:
            if key in copies and copies[key][0] is dead:
                del copies[key]

        copies[key] = weakref.ref(array, remove), copy
        return copy

    def _moves(self, value: Any) -> bool:
        if self._target is None:
            return is_xp_array(value) if self._weak else container_kind(value) is not None
        return value is not None and not isinstance(self._target, np.ndarray)

    def __reduce__(self) -> Any:
        return partial(TransferCache, self._target, weak=self._weak), ()


_shared: ContextVar[TransferCache | None] = ContextVar("manyfit_shared_host_copies", default=None)


def share_host_copies(cache: TransferCache) -> AbstractContextManager[Any]:
    """Let `to_host_once` use a weak cache inside a ``with`` block."""
    return set_in_block(_shared, cache)


def to_host_once(value: Any) -> Any:
    """As `container_to_host`; inside `share_host_copies` each array is copied once, to a read-only copy."""
    cache = _shared.get()
    return container_to_host(value) if cache is None or not is_xp_array(value) else cache(value)


def remember_host_copy(array: Any, host: Any) -> None:
    """Tell `to_host_once` the content of an array that was just made from a NumPy array."""
    cache = _shared.get()
    if cache is not None and is_xp_array(array) and type(host) is np.ndarray:
        cache.add(array, host)
