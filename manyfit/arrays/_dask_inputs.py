"""Dask's lazy arrays, frames, series, bags and delayed values, computed before a search reads them."""

import math
from collections.abc import Sequence
from typing import Any

from manyfit._config.sizes import format_size, machine_memory

# The backends of Dask's default configuration.
_DEFAULTS = {"array": "numpy", "dataframe": "pandas"}


def compute_dask_inputs(data: Sequence[Any], caller: str) -> list[Any]:
    """Compute the lazy values among `data` by Dask's current scheduler; other values stay as they are.

    Chunks move to the backend that Dask's configuration names if it is not the default. Raises MemoryError,
    in the name of `caller` and before anything is computed, if arrays are larger than this machine's memory.
    """
    positions = [i for i, one in enumerate(data) if _is_lazy(one)]
    if not positions:
        return list(data)
    from dask.base import compute

    lazy = [_with_backend(data[i], caller) for i in positions]
    _refuse_too_large(lazy, caller)
    computed: dict[int, Any] = {}
    for kind in _DEFAULTS:  # one call for both kinds would make Dask warn
        alike = {i: one for i, one in zip(positions, lazy, strict=True) if _kind(one) == kind}
        computed.update(zip(alike, compute(*alike.values()), strict=True))
    return [computed.get(i, one) for i, one in enumerate(data)]


def _is_lazy(one: Any) -> bool:
    # Dask's protocol; users without Dask data do not import Dask.
    return not isinstance(one, type) and getattr(one, "__dask_graph__", None) is not None


def _kind(one: Any) -> str:
    # A delayed value has an attribute of any name.
    return "array" if isinstance(getattr(one, "chunks", None), tuple) else "dataframe"


def _with_backend(one: Any, caller: str) -> Any:
    """The value with its chunks in the library that Dask is configured for, unless that is the default.

    The default may also mean that nothing is configured, and would then copy CuPy's arrays to the host.
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
        error.add_note(f"{caller} loads Dask's data by {kind}.backend={backend!r} of Dask's configuration.")
        raise


def _refuse_too_large(lazy: Sequence[Any], caller: str) -> None:
    sizes = [float(one.nbytes) for one in lazy if _kind(one) == "array"]
    nbytes = sum(size for size in sizes if not math.isnan(size))
    if not nbytes:
        return  # the size of a frame is not known in advance
    memory = machine_memory()
    if nbytes > memory:
        shapes = " and ".join(str(one.shape) for one in lazy if _kind(one) == "array")
        raise MemoryError(
            f"{caller} loads Dask arrays into memory as a whole: those of shape {shapes} need "
            f"{format_size(int(nbytes))}, and this machine has {format_size(memory)}. Pass fewer "
            "rows or a smaller dtype."
        )
