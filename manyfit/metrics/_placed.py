"""Where arrays of a metric lie, and in which precision they are there."""

from typing import Any

from manyfit.arrays import array_namespace, device, to_device

Array = Any


def floating(like: Array) -> Any:
    """The widest floating dtype that the library of an array has on its device."""
    info = array_namespace(like).__array_namespace_info__()
    dtypes = info.dtypes(device=device(like), kind="real floating")
    return dtypes.get("float64", dtypes["float32"])


def beside(array: Any, predictions: Array) -> Any:
    """An array where the predictions lie; None stays."""
    if array is None:
        return None
    xp = array_namespace(predictions)
    return to_device(array, device(predictions), xp)
