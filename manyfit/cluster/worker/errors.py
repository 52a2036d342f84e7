"""Workers that died, and devices that are lost to their process."""

import os
from dataclasses import dataclass

from manyfit.cluster.worker.task_context import worker_of_thread

# Errors after which every call to a CUDA device fails in the same process.
_LOST = (
    "cudaErrorIllegalAddress",
    "cudaErrorLaunchFailure",
    "cudaErrorECCUncorrectable",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_LAUNCH_FAILED",
    "an illegal memory access was encountered",
    "unspecified launch failure",
)


class WorkerDied(RuntimeError):
    """The process of a worker ended each time that it ran a task."""


@dataclass(frozen=True)
class WorkerLost:
    """Takes the place of a result if workers died with the item; `error` takes that of a fit's error."""

    error: WorkerDied


def end_if_device_is_lost(error: str | None) -> None:
    """End the process of a worker with a nanny, which starts another, if this error text says that its device
    is lost."""
    is_lost = error is not None and any(name in error for name in _LOST)
    if is_lost and getattr(worker_of_thread(), "nanny", None):
        os._exit(1)
