"""Where arrays of a metric lie, and in which precision they are there."""

from typing import Any

from manyfit.arrays import array_namespace, device, to_device

Array = Any


def beside(array: Any, predictions: Array) -> Any:
    """An array where the predictions lie; None stays."""
    if array is None:
        return None
    xp = array_namespace(predictions)
    return to_device(array, device(predictions), xp)
