"""Which library has this process' GPU."""

import os
from importlib import import_module
from importlib.util import find_spec


def default_gpu() -> tuple[str, str]:
    """Find the library that host data go to where a GPU is asked for.

    Returns
    -------
    tuple of str
        CuPy where it is installed, else torch, and ``"cuda"``, as `to_place` takes them.

    Raises
    ------
    ImportError
        If neither is installed.
    RuntimeError
        If there is no GPU that it can use.
    """
    if find_spec("cupy") is not None:
        runtime = import_module("cupy").cuda.runtime
        try:
            found = bool(runtime.getDeviceCount())
        except runtime.CUDARuntimeError:  # no driver
            found = False
        return _found("cupy", found)
    if find_spec("torch") is not None:
        return _found("torch", import_module("torch").cuda.is_available())
    raise ImportError(
        "device='cuda' needs CuPy or torch, and neither is installed: install cupy-cuda12x or cupy-cuda13x, "
        "by the version of CUDA, or do not ask for device='cuda'."
    )


def _found(library: str, found: bool) -> tuple[str, str]:
    if not found:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
        raise RuntimeError(
            f"device='cuda' needs a GPU, and {library} finds none (CUDA_VISIBLE_DEVICES is {visible}). "
            "Without device='cuda' the work is done where the data lie."
        )
    return library, "cuda"
