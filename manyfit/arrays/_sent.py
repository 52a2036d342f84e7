"""Arrays of the host beside one of a device."""

from typing import Any

import numpy as np

from manyfit.arrays._namespace import Array, array_namespace, device
from manyfit.arrays._transfer import to_device


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
            there = to_device(array, device(self._like), array_namespace(self._like))
            self._sent[id(array)] = array, there
        return self._sent[id(array)][1]
