"""Questions to a scheduler, and calls in its client's event loop that do not wait."""

from collections.abc import Callable, Mapping
from typing import Any

Workers = Mapping[str, Mapping[str, Any]]
"""Facts that the scheduler has about its workers, by address."""

# A busy scheduler answers in milliseconds. One that is silent for this many seconds counts as gone.
ANSWER_S = 60.0


class SchedulerLost(ConnectionError):
    """The connection to the scheduler broke in the middle of a run."""


def ask_scheduler(client: Any, question: Callable[..., Any], **arguments: Any) -> Any:
    """Call a method of ``client.scheduler``, and wait at most `ANSWER_S` for the answer."""
    try:
        return client.sync(question, callback_timeout=ANSWER_S, **arguments)
    except TimeoutError as error:
        address = getattr(client.scheduler, "address", "an unknown address")
        raise SchedulerLost(
            f"The scheduler at {address} has not answered for {ANSWER_S:g} s: its process is stopped, or "
            "cannot be reached. Start it again, or connect a client to another one."
        ) from error


def get_workers(client: Any) -> Workers:
    """Ask the scheduler for its workers; the client's own record misses workers at times."""
    workers: Workers = ask_scheduler(client, client.scheduler.identity, n_workers=-1)["workers"]
    return workers


def call_soon_in_loop(client: Any, function: Callable[..., Any], *args: Any) -> None:
    """Call a function in the loop of a client, from any thread, without waiting for it."""
    client.loop.add_callback(function, *args)
