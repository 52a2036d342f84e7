"""joblib.Parallel of joblib 1.4 to 1.6."""

import os
from typing import Any

from joblib._parallel_backends import LokyBackend
from joblib.externals.loky.backend import resource_tracker
from joblib.externals.loky.backend.reduction import dump
from joblib.parallel import get_active_backend

__all__ = [
    "delete_tracked_file",
    "dispatch_more",
    "drop_ready_batches",
    "dump_for_processes",
    "fail_parallel",
    "joblib_is_local",
    "joblib_starts_processes",
    "track_file",
]


def joblib_is_local() -> bool:
    """Whether joblib's active backend is one of its own, all of which work on this machine."""
    backend, _ = get_active_backend()
    return type(backend).__module__ == "joblib._parallel_backends"


def joblib_starts_processes() -> bool:
    """Whether joblib's active backend runs tasks in processes of its own: loky."""
    backend, _ = get_active_backend()
    return isinstance(backend, LokyBackend)


def dump_for_processes(thing: Any, stream: Any) -> None:
    """Pickle a thing as loky does what it sends: classes and functions of ``__main__`` with their code."""
    dump(thing, stream)


def track_file(path: str) -> None:
    """Have joblib's tracker of resources delete a file when this process has ended, even if it is killed."""
    resource_tracker.register(path, "file")


def delete_tracked_file(path: str) -> None:
    """Delete a file of `track_file`."""
    os.unlink(path)
    resource_tracker.unregister(path, "file")


def fail_parallel(callback: Any, outcome: Any) -> None:
    """End a call of ``joblib.Parallel`` with an error that belongs to none of its batches.

    `callback` is the `BatchCompletionCallBack` of any batch, `outcome` what ``retrieve_result_callback`` of
    the backend raises. joblib itself waits for ever if a SystemExit ends the thread that reads its tasks.
    """
    parallel = callback.parallel
    tracker = type(callback)(0.0, 1, parallel)
    with parallel._lock:
        if parallel._call_id == callback.parallel_call_id:
            # joblib 1.5 has this method.
            getattr(parallel, "_register_new_job", parallel._jobs.append)(tracker)
            tracker(outcome)


def dispatch_more(callback: Any, n: int) -> None:
    """Let a call of ``joblib.Parallel`` hand out `n` more batches than its ``pre_dispatch`` allows.

    `callback` is the `BatchCompletionCallBack` of any batch. A ``pre_dispatch`` that is a number, or
    ``"all"``, is obeyed.
    """
    parallel = callback.parallel
    if not isinstance(parallel.pre_dispatch, str):
        return
    with parallel._lock:
        for _ in range(n):
            if parallel._call_id == callback.parallel_call_id and parallel._original_iterator is not None:
                parallel.dispatch_next()


def drop_ready_batches(parallel: Any) -> None:
    """Drop the batches that a failed call did not hand out, which the next call would run as its own."""
    while not parallel._ready_batches.empty():
        parallel._ready_batches.get(block=False)
