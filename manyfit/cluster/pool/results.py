"""Results of tasks, fetched in the loop of the client as they come, many in one message."""

import asyncio
import contextlib
import queue
from typing import TYPE_CHECKING, Any

from manyfit.cluster.inspection.scheduler_info import call_soon_in_loop

if TYPE_CHECKING:
    from distributed import Client, Future


class Results:
    """A queue of tasks and what they came to.

    Parameters
    ----------
    client : Client
    """

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._arrived: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._fetching: dict[Future, asyncio.Task[Any]] = {}
        self._given_up: set[Future] = set()

    def get(self, timeout: float) -> tuple[Any, Any] | None:
        """The next task that ended and its result or error; None if there is none before long."""
        with contextlib.suppress(queue.Empty):
            return self._arrived.get(timeout=timeout)
        return None

    def put(self, source: Any, came: Any) -> None:
        """Add something else."""
        self._arrived.put((source, came))

    def watch(self, future: "Future") -> None:
        """Wait for a task, and fetch its result however long that takes."""
        call_soon_in_loop(self._client, self._watch, future)

    def give_up(self, future: "Future") -> None:
        """Stop fetching a result, if that is under way: no worker that has it answers, or nobody reads it.

        The task comes as one that was cancelled.

        Notes
        -----
        `Client.cancel` does not do that. What is fetched from a worker that does not answer would take one of
        the few messages by which a client fetches results, for ever. Whether a future was cancelled while its
        result was on its way is not seen from it: by then its status is ``"cancelled"``.
        """
        call_soon_in_loop(self._client, self._give_up, future)

    async def _watch(self, future: "Future") -> None:
        task = asyncio.current_task()
        assert task is not None
        self._fetching[future] = task
        came: Any
        while True:
            try:
                came = await self._client.gather(future, asynchronous=True)
            except asyncio.CancelledError as error:
                # One message fetches many results. It ends for all when one of them is given up.
                if future not in self._given_up and future.status == "finished":
                    continue
                came = error
            except BaseException as error:
                came = error
            break
        self._fetching.pop(future, None)
        self._given_up.discard(future)
        self._arrived.put((future, came))

    def _give_up(self, future: "Future") -> None:
        task = self._fetching.get(future)
        if task is not None:
            self._given_up.add(future)
            task.cancel()
