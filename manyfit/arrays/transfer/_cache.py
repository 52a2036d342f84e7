"""Arrays that cross the border once, however often they are asked for."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from manyfit.arrays._namespace import Array, array_namespace, device
from manyfit.arrays.transfer._containers import container_kind, container_to_host
from manyfit.arrays.transfer._host_device import to_device, to_host


def to_device_of(array: Any, like: Array, *, label: str | None = None) -> Any:
    """Bring an array to where another one lies.

    Parameters
    ----------
    array : array or None
        Of any library, on host or device; None stays.
    like : array
        Of any library.
    label : str, optional
        Why it crosses, for `transfers`; by default what `label_transfers` says.

    Returns
    -------
    array
        Of the library and on the device of `like`.
    """
    if array is None:
        return None
    return to_device(array, device(like), array_namespace(like), label=label)


class Beside:
    """Brings arrays to where another one lies, each once.

    Parameters
    ----------
    like : array
        Array of any library; what is beside one of NumPy stays as it is.
    """

    def __init__(self, like: Array) -> None:
        self._like = like
        self._sent: dict[int, tuple[Any, Array]] = {}

    def __call__(self, array: Any, label: str | None = None) -> Any:
        """Bring an array there.

        Parameters
        ----------
        array : array or None
            Of any library; None stays.
        label : str, optional
            Why it crosses, if it has not crossed before.

        Returns
        -------
        array
            Of the library and on the device of the other; the same object each time.
        """
        if array is None or isinstance(self._like, np.ndarray):
            return array
        if id(array) not in self._sent:
            # It is kept, so that no other array gets its identity.
            self._sent[id(array)] = array, to_device_of(array, self._like, label=label)
        return self._sent[id(array)][1]


class Brought:
    """Brings arrays to the host, each once; pickled it is empty."""

    def __init__(self) -> None:
        self._brought: dict[int, tuple[Array, np.ndarray]] = {}

    def __call__(self, value: Any, label: str | None = None) -> Any:
        """Bring an array to the host.

        Parameters
        ----------
        value : object
            An array of any library in memory, or anything else, which comes back as it is.
        label : str, optional
            Why it crosses, if it has not crossed before.

        Returns
        -------
        object
            A NumPy array for an array; the same object each time.
        """
        if container_kind(value) != "array":
            return value
        if id(value) not in self._brought:
            self._brought[id(value)] = value, to_host(value, label=label)
        return self._brought[id(value)][1]

    def __reduce__(self) -> Any:
        return Brought, ()


class HomeCopies:
    """Copies on the host of arrays of a device, each made once as long as the array lives."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[weakref.ref[Any], np.ndarray]] = {}

    def of(self, array: Array) -> np.ndarray:
        """The copy of an array, or its own memory where that is the host's: read-only, several read it."""
        kept = self._copies.get(id(array))
        return (
            kept[1] if kept is not None and kept[0]() is array else self.note(array, container_to_host(array))
        )

    def note(self, array: Array, host: np.ndarray) -> np.ndarray:
        """Keep what an array holds, which is known on the host already; it is returned read-only."""
        copies, identity, host = self._copies, id(array), host.view()
        host.flags.writeable = False

        def forget(gone: weakref.ref[Any]) -> None:
            if identity in copies and copies[identity][0] is gone:
                del copies[identity]

        copies[identity] = weakref.ref(array, forget), host
        return host


_home_copies: ContextVar[HomeCopies | None] = ContextVar("manyfit_home_copies", default=None)


@contextmanager
def home_copies(copies: HomeCopies) -> Iterator[None]:
    """Within it `once_at_home` brings no array to the host a second time.

    Parameters
    ----------
    copies : HomeCopies
        What is at home.

    Yields
    ------
    None
        Nothing.
    """
    token = _home_copies.set(copies)
    try:
        yield
    finally:
        _home_copies.reset(token)


def once_at_home(value: Any) -> Any:
    """A container as the host has it; of an array a copy that was made before, inside of `home_copies`.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    object
        What `container_to_host` returns; copies that others read, too, are read-only.
    """
    copies = _home_copies.get()
    if copies is None or container_kind(value) != "array":
        return container_to_host(value)
    return copies.of(value)


def note_at_home(array: Any, host: Any) -> None:
    """Inside of `home_copies`, remember what an array that was made of one of the host holds.

    Parameters
    ----------
    array : array
        Of any library; nothing is kept of what is none, or is the host's own.
    host : object
        What it was made of.
    """
    copies = _home_copies.get()
    if (
        copies is not None
        and array is not host
        and container_kind(array) == "array"
        and type(host) is np.ndarray
    ):
        copies.note(array, host)
