"""What a scheduler says of its workers, and calls that do not wait."""

from collections.abc import Callable, Mapping
from typing import Any

Workers = Mapping[str, Mapping[str, Any]]
"""By address, what the scheduler says of each."""

# A scheduler that is at work answers in milliseconds. After so long it is taken to be gone.
ANSWER_S = 60.0


def asked(client: Any, question: Callable[..., Any], **arguments: Any) -> Any:
    """What the scheduler answers.

    Parameters
    ----------
    client : distributed.Client
        Connected.
    question : callable
        A method of ``client.scheduler``.
    **arguments : dict
        Its arguments.

    Raises
    ------
    ConnectionError
        If it does not answer in `ANSWER_S`.
    """
    try:
        return client.sync(question, callback_timeout=ANSWER_S, **arguments)
    except TimeoutError as error:
        address = getattr(client.scheduler, "address", "an unknown address")
        raise ConnectionError(
            f"The scheduler at {address} has not answered for {ANSWER_S:g} s: its process is stopped, or "
            "cannot be reached. Start it again, or connect a client to another one."
        ) from error


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
    workers: Workers = asked(client, client.scheduler.identity, n_workers=-1)["workers"]
    return workers


def call_soon_in_loop(client: Any, function: Callable[..., Any], *args: Any) -> None:
    """Call a function in the loop of a client, from any thread, without waiting for it."""
    client.loop.add_callback(function, *args)
