"""Arrays that cross the border once, however often they are asked for."""

from typing import Any

import numpy as np

from manyfit.arrays._containers import form_of
from manyfit.arrays._namespace import Array, array_namespace, device
from manyfit.arrays._transfer import to_device, to_host


def beside(array: Any, like: Array) -> Any:
    """Bring an array to where another one lies.

    Parameters
    ----------
    array : array or None
        Of any library, on host or device; None stays.
    like : array
        Of any library.

    Returns
    -------
    array
        Of the library and on the device of `like`.
    """
    return None if array is None else to_device(array, device(like), array_namespace(like))


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

    def __call__(self, array: Any) -> Any:
        """Bring an array there.

        Parameters
        ----------
        array : array or None
            Of any library; None stays.

        Returns
        -------
        array
            Of the library and on the device of the other; the same object each time.
        """
        if array is None or isinstance(self._like, np.ndarray):
            return array
        if id(array) not in self._sent:
            # It is kept, so that no other array gets its identity.
            self._sent[id(array)] = array, beside(array, self._like)
        return self._sent[id(array)][1]


class Brought:
    """Brings arrays to the host, each once; pickled it is empty."""

    def __init__(self) -> None:
        self._brought: dict[int, tuple[Array, np.ndarray]] = {}

    def __call__(self, value: Any) -> Any:
        """Bring an array to the host.

        Parameters
        ----------
        value : object
            An array of any library in memory, or anything else, which comes back as it is.

        Returns
        -------
        object
            A NumPy array for an array; the same object each time.
        """
        if form_of(value) != "array":
            return value
        if id(value) not in self._brought:
            self._brought[id(value)] = value, to_host(value)
        return self._brought[id(value)][1]

    def __reduce__(self) -> Any:
        return Brought, ()
