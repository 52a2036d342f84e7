"""Where a search runs: on the workers of a cluster, if there is a client."""

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from manyfit.cluster.inspection.scheduler_info import workers_of
from manyfit.cluster.pool.resource_queue import annotated, slots_of
from manyfit.cluster.worker.content_pickle import packed

WRONG_CLIENT = "client should be a distributed.Client, None (the current one, if any) or False; got {!r}."


# Clients of a process that this one was forked from: their threads are there no more.
_left_behind: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _leave_behind() -> None:
    if "distributed" not in sys.modules:
        return
    from distributed import Client

    with contextlib.suppress(ValueError):
        _left_behind.add(Client.current())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_behind)


def client_for(client: Any) -> Any:
    """The client that a search uses.

    Parameters
    ----------
    client : distributed.Client, None or False
        None: the current one, if there is one. False: none.

    Returns
    -------
    distributed.Client or None
        None where the work is done in this process, or by joblib. So it is within a task of a cluster
        too: it holds its slot already, and would wait for itself.

    Raises
    ------
    TypeError
        If it is something else.
    ValueError
        If it is not connected to a scheduler.
    """
    if client is False:
        return None
    if client is None and "distributed" not in sys.modules:
        return None  # nobody has made a client, and the import takes a second
    from distributed import Client, get_worker

    if client is not None and not isinstance(client, Client):
        raise TypeError(WRONG_CLIENT.format(client))
    if client is not None and client.asynchronous:
        raise TypeError(
            f"client is asynchronous, and would wait for itself: {client!r}. Connect another one."
        )
    try:
        get_worker()
    except ValueError:
        pass
    else:
        return None
    if client is None:
        try:
            client = Client.current()
        except ValueError:
            return None
        if client in _left_behind:
            return None
        return client if client.status == "running" and not client.asynchronous else None
    if client.status != "running":
        raise ValueError(f"client is {client.status!r}, not connected to a scheduler: {client!r}")
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
) -> Iterator[tuple[Any, Any]]:
    """Call ``function(item, common)`` for each item on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        Connected; its workers can import the function.
    function : callable
        Called with an item and `common`. May return `Partly`, and ask `wanted` whether to.
    items : sequence
        Small, each.
    common : object
        For all items the same. Its arrays travel once to each worker, which finds those of NumPy read-only.
    name : callable
        What the dashboard calls the task of an item.
    fuse : callable
        Whether an item may be put together with others like it to a task that takes long enough.
    owners : sequence
        Large things in `common`. As long as these are there, workers keep them for later runs.
    salt : str
        Runs of another one share no tasks.
    needs : callable, optional
        What an item takes of its worker, as ``{"GPU": 1}``; what `dask.annotate` says of resources comes on
        top.

    Yields
    ------
    item, result
        In the order in which they come. The result is a `Died` for an item whose worker dies each time.

    Raises
    ------
    Exception
        What cannot be pickled raises before anything is sent. The first exception of a task is raised, and
        the others are cancelled.
    """
    from manyfit.cluster.pool._dispatcher import Dispatcher
    from manyfit.cluster.pool.placement import placement_of

    package = packed(common, salt, owners)
    placement = placement_of(client)
    placement.hold(package)
    dispatch = Dispatcher(client, placement, function, package, name, fuse, needs)
    try:
        yield from dispatch.results(items)
    finally:
        placement.release(package)


def slots(client: Any, needs: Mapping[str, float] | None = None) -> int:
    """Tasks that the workers of a cluster run at a time.

    Parameters
    ----------
    client : distributed.Client
        Connected.
    needs : mapping, optional
        What each takes of its worker, as ``{"GPU": 1}``; what `dask.annotate` says of resources comes on top.

    Returns
    -------
    int
        At least 1.
    """
    takes = {**(needs or {}), **annotated()}
    return max(1, sum(slots_of(worker, takes) for worker in workers_of(client).values()))
