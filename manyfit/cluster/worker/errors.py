"""What a run says of an item that its workers die of, and of a device that is lost to its process."""

import os
from dataclasses import dataclass

# How the errors are named after which every call to a CUDA device fails in the same process.
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
    """The process of a worker ended each time that it ran something."""


@dataclass(frozen=True)
class WorkerLost:
    """In place of a result: the item that workers died of.

    Parameters
    ----------
    error : WorkerDied
        What to raise where scikit-learn would raise the error of a fit.
    """

    error: WorkerDied


def end_if_device_is_lost(error: str | None) -> None:
    """End a worker's process after an error after which its device answers no more.

    Parameters
    ----------
    error : str or None
        The text of the error. A nanny starts another process; workers without one go on.
    """
    if error is None or not any(name in error for name in _LOST):
        return
    from distributed import get_worker

    if getattr(get_worker(), "nanny", None):
        os._exit(1)
