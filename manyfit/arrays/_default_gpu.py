"""The library through which this process uses its GPU."""

import os
from importlib import import_module
from importlib.util import find_spec


def default_gpu() -> tuple[str, str]:
    """The place for host data if the user asks for a GPU: CuPy if installed, else torch, and "cuda".

    Raises ImportError if neither is installed, and RuntimeError if the library finds no GPU.
    """
    if find_spec("cupy") is not None:
        runtime = import_module("cupy").cuda.runtime
        try:
            found = bool(runtime.getDeviceCount())
        except runtime.CUDARuntimeError:  # no driver
            found = False
        return _require_gpu("cupy", found)
    if find_spec("torch") is not None:
        return _require_gpu("torch", import_module("torch").cuda.is_available())
    raise ImportError(
        "device='cuda' needs CuPy or torch, and neither is installed. Install cupy-cuda12x or cupy-cuda13x, "
        "by your version of CUDA, or leave out device='cuda'."
    )


def _require_gpu(library: str, found: bool) -> tuple[str, str]:
    if not found:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
        raise RuntimeError(
            f"device='cuda' needs a GPU, and {library} finds none (CUDA_VISIBLE_DEVICES is {visible}). "
            "Without device='cuda' the search runs where the data lie."
        )
    return library, "cuda"
