"""Data that Dask has not computed yet, which are loaded where they are needed whole."""

import math
from collections.abc import Sequence
from typing import Any

# What Dask's own configuration says where a user said nothing.
_DEFAULTS = {"array": "numpy", "dataframe": "pandas"}


def compute_dask_inputs(data: Sequence[Any], who: str) -> list[Any]:
    """Data in memory: what is lazy is computed, and the rest comes back as it is.

    Parameters
    ----------
    data : sequence of object
        Dask's arrays, frames, series, bags and delayed values, and anything else.
    who : str
        Who needs them, for errors.

    Returns
    -------
    list of object
        As many; of a lazy one what its chunks are put together to, in the library that these are of or that
        ``array.backend`` or ``dataframe.backend`` of Dask's configuration names, if it is not the default.

    Raises
    ------
    MemoryError
        If arrays are larger than the memory of this machine. Nothing is computed then.

    Notes
    -----
    One pass over the chunks of arrays, and one over those of the rest, through Dask's current scheduler:
    with a client, on its workers, from which the result comes to this process.
    """
    lazy = [i for i, one in enumerate(data) if _is_lazy(one)]
    if not lazy:
        return list(data)
    from dask.base import compute

    asked = [_with_backend(data[i], who) for i in lazy]
    _refuse_too_large(asked, who)
    came: dict[int, Any] = {}
    for kind in _DEFAULTS:  # Dask warns of both in one call
        alike = {i: one for i, one in zip(lazy, asked, strict=True) if _kind(one) == kind}
        came.update(zip(alike, compute(*alike.values()), strict=True))
    return [came.get(i, one) for i, one in enumerate(data)]


def _is_lazy(one: Any) -> bool:
    # Dask's protocol; Dask itself is not imported for those who do not use it.
    return not isinstance(one, type) and getattr(one, "__dask_graph__", None) is not None


def _kind(one: Any) -> str:
    # A delayed value has an attribute of any name.
    return "array" if isinstance(getattr(one, "chunks", None), tuple) else "dataframe"


def _with_backend(one: Any, who: str) -> Any:
    """With its chunks in the library that Dask is configured for, if that is not its default.

    The default is not told from nothing being configured: arrays of CuPy would come to the host by it.
    """
    import dask

    kind = _kind(one)
    backend = dask.config.get(f"{kind}.backend", _DEFAULTS[kind])
    if backend == _DEFAULTS[kind] or not hasattr(type(one), "to_backend"):
        return one
    if kind == "array" and one.dtype.kind not in "biufc":
        return one  # labels that are strings stay on the host
    try:
        return one.to_backend(backend)
    except Exception as error:
        error.add_note(f"{who} loads Dask's data by {kind}.backend={backend!r} of Dask's configuration.")
        raise


def _refuse_too_large(lazy: Sequence[Any], who: str) -> None:
    sizes = [float(one.nbytes) for one in lazy if _kind(one) == "array"]
    nbytes = sum(size for size in sizes if not math.isnan(size))
    if not nbytes:
        return  # what a frame takes is not known before
    from dask.utils import format_bytes
    from distributed.system import MEMORY_LIMIT

    if nbytes > MEMORY_LIMIT:
        shapes = " and ".join(str(one.shape) for one in lazy if _kind(one) == "array")
        raise MemoryError(
            f"{who} loads Dask's arrays as a whole: those of shape {shapes} have "
            f"{format_bytes(int(nbytes))}, this machine has {format_bytes(MEMORY_LIMIT)}. Give it some of "
            "their rows, or numbers of a smaller type."
        )
