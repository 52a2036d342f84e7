"""What a cluster of this machine's GPUs is started with; CUDA is not touched in this process."""

import os
from importlib.util import find_spec
from itertools import takewhile
from typing import Any

# The resource that a worker declares for its GPU: how many heavy tasks may use it at a time.
GPU = "GPU"
# Share of a GPU's memory that RMM takes at the start; its pool grows up to all of it.
POOL_SHARE = 0.5

_WITHOUT_DASK_CUDA = (
    "local_cluster(gpu=True) starts GPU workers through dask-cuda, which is not installed: install manyfit "
    "with the extra gpu-cu12 or gpu-cu13, for the CUDA version that you have"
)
_WITHOUT_GPU = (
    "local_cluster(gpu=True): the NVIDIA driver shows no GPU to this process "
    "(CUDA_VISIBLE_DEVICES is {visible}); gpu=False starts CPU workers"
)


def wants_gpus(gpu: bool | None) -> bool:
    """Whether to start GPU workers: asked for, or, with None, where dask-cuda and a GPU are there.

    Parameters
    ----------
    gpu : bool or None
        As in `local_cluster`.

    Returns
    -------
    bool
        True only if dask-cuda and a GPU are there.

    Raises
    ------
    ImportError
        If GPUs are asked for and dask-cuda is not installed.
    RuntimeError
        If GPUs are asked for and there is none.
    """
    if gpu is not None and not gpu:
        return False
    if find_spec("dask_cuda") is None:
        if gpu:
            raise ImportError(_WITHOUT_DASK_CUDA)
        return False
    there = gpu_count() > 0
    if gpu and not there:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise RuntimeError(_WITHOUT_GPU.format(visible="not set" if visible is None else repr(visible)))
    return there


def gpu_count() -> int:
    """GPUs that the driver shows to this process, asked through NVML, which makes no CUDA context.

    Returns
    -------
    int
        0 without a driver, and without NVML's Python package, which dask-cuda brings.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    named = None if visible is None else list(takewhile(_names_a_device, visible.split(",")))
    if named == []:
        return 0
    try:
        import pynvml
    except ImportError:
        return 0
    try:
        pynvml.nvmlInit()
        there = int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:  # no driver, or none that answers
        return 0
    if named is None:
        return there
    # Parts of one device are named by texts, and may be more than there are devices.
    return min(there, len(named)) if all(entry.strip().isdecimal() for entry in named) else len(named)


def _names_a_device(entry: str) -> bool:
    """To CUDA, the first entry that names none ends the list."""
    return entry.strip() not in ("", "-1")


def gpu_options(
    slots: int, rmm_pool_size: Any, device_memory_limit: Any, others: dict[str, Any]
) -> dict[str, Any]:
    """Options of ``dask_cuda.LocalCUDACluster`` for one worker a GPU.

    Parameters
    ----------
    slots : int
        Heavy tasks at a time on each GPU, declared as its resource.
    rmm_pool_size : int, float, str or None
        As dask-cuda's; "auto" is half of the device where RMM is there and its asynchronous kind not chosen.
    device_memory_limit : int, float, str or None
        As dask-cuda's: from here on results go from the device to the host.
    others : dict
        What else the user passes on, which goes first.

    Returns
    -------
    dict
        Keyword arguments.
    """
    shared = find_spec("rmm") is not None
    if rmm_pool_size == "auto":
        # RMM's asynchronous allocator is a pool of the driver's.
        rmm_pool_size = POOL_SHARE if shared and not others.get("rmm_async") else None
    options: dict[str, Any] = {"rmm_pool_size": rmm_pool_size, "device_memory_limit": device_memory_limit}
    if shared and find_spec("cupy") is not None:
        # Without it CuPy keeps a pool of its own beside RMM's, and one starves the other.
        options["rmm_allocator_external_lib_list"] = ["cupy"]
    # The resource is part of what a worker is started with, so that one that is started again has it at once.
    return {**options, **others, "resources": {**others.get("resources", {}), GPU: slots}}
