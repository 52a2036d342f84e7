"""What a scheduler says of its workers, and calls that do not wait."""

from collections.abc import Callable, Mapping
from typing import Any

Workers = Mapping[str, Mapping[str, Any]]
"""By address, what the scheduler says of each."""


def workers_of(client: Any) -> Workers:
    """The workers of a client's cluster, as the scheduler knows them now.

    What the client itself remembers is short of workers at times: its own updates ask for none.

    Parameters
    ----------
    client : distributed.Client
        Connected.

    Returns
    -------
    mapping of str to mapping
    """
    told = client.sync(client.scheduler.identity, n_workers=-1)
    workers: Workers = told["workers"]
    return workers


def soon(client: Any, function: Callable[..., Any], *args: Any) -> None:
    """Call a function in the loop of a client, from any thread, without waiting for it."""
    client.loop.add_callback(function, *args)
