"""Entry points of a search: its client, the slots of its cluster, and a run of items on the workers."""

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from manyfit.cluster.inspection.scheduler_info import get_workers
from manyfit.cluster.inspection.versions import require_distributed
from manyfit.cluster.pool.resource_queue import annotated_resources, worker_slots
from manyfit.cluster.worker.content_pickle import is_pickle, pack
from manyfit.cluster.worker.task_context import worker_of_thread

# An array that so many runs have not had is released: coefficients are others in each pass, y is the same.
KEPT_RUNS = 4
WRONG_CLIENT = (
    "client should be a distributed.Client, None (the current one, if any) or False; got {!r}. "
    "Client(...) makes one from a cluster or the address of a scheduler."
)


# Clients of a process that this one was forked from: their threads do not exist in this one.
_before_fork: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _note_fork() -> None:
    if "distributed" not in sys.modules:
        return
    from distributed import Client

    with contextlib.suppress(ValueError):
        _before_fork.add(Client.current())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def client_for(client: Any) -> Any:
    """Return the client that a search uses, or None if it runs in this process or through joblib.

    `client` is a client, None for the current one, or False for none. A search within a task of a cluster
    uses none: it would wait for the slot that its own task holds.
    """
    if client is False:
        return None
    if client is None and "distributed" not in sys.modules:
        return None  # nobody has made a client, and the import takes a second
    if client is not None:
        require_distributed(f"client={client!r}")
    from distributed import Client

    if client is not None and not isinstance(client, Client):
        raise TypeError(WRONG_CLIENT.format(client))
    if client is not None and client.asynchronous:
        raise TypeError(
            f"client is asynchronous, and would wait for itself: {client!r}. Connect another one."
        )
    if worker_of_thread() is not None:
        return None
    if client is None:
        try:
            client = Client.current()
        except ValueError:
            return None
        if client in _before_fork:
            return None
        return client if client.status == "running" and not client.asynchronous else None
    if client.status != "running":
        raise ValueError(
            f"client is {client.status!r}, not connected to a scheduler: {client!r}. Connect another one."
        )
    return client


def run_on_cluster(
    client: Any,
    function: Callable[[Any, Any], Any],
    items: Sequence[Any],
    common: Any,
    *,
    name: Callable[[Any], str],
    fuse: Callable[[Any], bool],
    owners: Sequence[Any] = (),
    salt: str = "",
    needs: Callable[[Any], Mapping[str, float]] = lambda item: {},
    inputs: Callable[[Any, int], Sequence[Any]] = lambda item, tries: (),
    kept: dict[str, int] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Call ``function(item, common)`` for each item on workers; yield items with results as they come.

    The result is a `WorkerLost` for an item whose worker dies each time. Workers can import the function; it
    may return a `PartialResult`. Large arrays of `common` are sent once, and workers find NumPy arrays
    read-only. Workers keep what belongs to the `owners`, which are large objects in `common`, while these
    exist. `name` labels a task, `fuse` says whether an item may share a task with others, and `needs` which
    resources it takes beside those of `dask.annotate`. Runs with another `salt` share no tasks. The first
    exception of a task is raised, and the other tasks are cancelled.

    `inputs` gives the futures that an item reads, from it and the number of its earlier tries. The function
    finds the results of those of all items of its task by `task_context`. Dask runs the task where most of
    them lie. Arrays of `common` stay on the cluster until `release_arrays`,
    or until `KEPT_RUNS` runs have done without them, if they are `kept`: by name, the last run that had each.
    """
    from manyfit.cluster.pool.item_run import ItemRun
    from manyfit.cluster.pool.placement import get_placement

    package = pack(common, salt, owners)
    placement = get_placement(client)
    placement.hold(package)
    if kept is not None:
        keep_arrays(placement, {key for key in package.parts if not is_pickle(key)}, kept)
    run = ItemRun(client, placement, function, package, name, fuse, needs, inputs)
    try:
        yield from run.results(items)
    finally:
        placement.stop_using(package.parts)


def keep_arrays(placement: Any, arrays: set[str], kept: dict[str, int]) -> None:
    """Keep the arrays of a run on a cluster, and release those that the last runs have not had."""
    now = 1 + max(kept.values(), default=0)
    placement.use(arrays - kept.keys())
    kept |= dict.fromkeys(arrays, now)
    ended = [key for key, last in kept.items() if now - last >= KEPT_RUNS]
    placement.stop_using(ended)
    for key in ended:
        del kept[key]


def release_arrays(client: Any, kept: dict[str, int]) -> None:
    """Release arrays that runs have kept on a cluster."""
    from manyfit.cluster.pool.placement import get_placement

    get_placement(client).stop_using(kept)
    kept.clear()


def count_slots(client: Any, needs: Mapping[str, float] | None = None) -> int:
    """Count the tasks that a cluster runs at a time, at least 1, if each `needs` these resources."""
    takes = tuple({**(needs or {}), **annotated_resources()}.items())
    return max(1, sum(worker_slots(worker, takes) for worker in get_workers(client).values()))
