"""Options of a cluster on this machine's GPUs; this process does not use CUDA."""

import os
from importlib.util import find_spec
from itertools import takewhile
from typing import Any

# Resource that a worker declares for its GPU: the number of heavy tasks that may use it at a time.
GPU = "GPU"
# Share of a GPU's memory that RMM's pool starts with; the pool grows up to all of it.
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
    """Whether to start GPU workers; None starts them if dask-cuda is installed and there is a GPU.

    Raises an ImportError or a RuntimeError if `gpu` is True and one is missing.
    """
    if gpu is not None and not gpu:
        return False
    if find_spec("dask_cuda") is None:
        if gpu:
            raise ImportError(_WITHOUT_DASK_CUDA)
        return False
    found = gpu_count() > 0
    if gpu and not found:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise RuntimeError(_WITHOUT_GPU.format(visible="not set" if visible is None else repr(visible)))
    return found


def gpu_count() -> int:
    """Count the GPUs that the driver shows to this process, through NVML, which makes no CUDA context.

    The count is 0 without a driver, and without NVML's Python package, which dask-cuda installs.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    # For CUDA, the first entry that names no device ends the list.
    entries = None if visible is None else [entry.strip() for entry in visible.split(",")]
    named = None if entries is None else list(takewhile(lambda entry: entry not in ("", "-1"), entries))
    if named == []:
        return 0
    try:
        import pynvml
    except ImportError:
        return 0
    try:
        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:  # no driver, or none that answers
        return 0
    if named is None:
        return count
    # Parts of one device have names that are no numbers, and may be more than the devices.
    return min(count, len(named)) if all(map(str.isdecimal, named)) else len(named)


def gpu_options(
    slots: int, rmm_pool_size: Any, device_memory_limit: Any, others: dict[str, Any]
) -> dict[str, Any]:
    """Make the options of ``dask_cuda.LocalCUDACluster`` for one worker per GPU with `slots` tasks at a time.

    Memory options are dask-cuda's; a pool size of "auto" is half of the device, if RMM is installed and its
    asynchronous allocator is not chosen. Options in `others` come first.
    """
    shared = find_spec("rmm") is not None
    if rmm_pool_size == "auto":
        # RMM's asynchronous allocator is a pool of the driver.
        rmm_pool_size = POOL_SHARE if shared and not others.get("rmm_async") else None
    options: dict[str, Any] = {"rmm_pool_size": rmm_pool_size, "device_memory_limit": device_memory_limit}
    if shared and find_spec("cupy") is not None:
        # Otherwise CuPy keeps a pool of its own beside RMM's, and one starves the other.
        options["rmm_allocator_external_lib_list"] = ["cupy"]
    # The resource is an option of the worker's start, so that a restarted worker has it at once.
    return {**options, **others, "resources": {**others.get("resources", {}), GPU: slots}}
