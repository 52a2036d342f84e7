"""Results of tasks, fetched in the event loop of the client as they come, many in one message."""

import asyncio
import contextlib
import queue
from typing import TYPE_CHECKING, Any

from manyfit.cluster.inspection.scheduler_info import call_soon_in_loop

if TYPE_CHECKING:
    from distributed import Client, Future


class Results:
    """Queue of ended tasks with their results or errors."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._arrived: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._fetching: dict[Future, asyncio.Task[Any]] = {}
        self._given_up: set[Future] = set()

    def get(self, timeout: float) -> tuple[Any, Any] | None:
        """Return the next ended task and its result or error; None if none ends in time.

        After `wake`, both are None.
        """
        with contextlib.suppress(queue.Empty):
            return self._arrived.get(timeout=timeout)
        return None

    def wake(self) -> None:
        """Have `get` return at once."""
        self._arrived.put((None, None))

    def watch(self, future: "Future") -> None:
        """Wait for a task, and fetch its result however long that takes."""
        call_soon_in_loop(self._client, self._watch, future)

    def give_up(self, future: "Future") -> None:
        """Stop fetching a result that nobody reads, or that only a silent worker has; the task then counts as
        cancelled. `Client.cancel` would go on fetching: a silent worker would hold for ever one of the few
        messages by which a client fetches results.
        """
        call_soon_in_loop(self._client, self._give_up, future)

    async def _watch(self, future: "Future") -> None:
        task = asyncio.current_task()
        assert task is not None
        self._fetching[future] = task
        result: Any
        while True:
            try:
                result = await self._client.gather(future, asynchronous=True)
            except asyncio.CancelledError as error:
                # One message fetches many results. If one is given up, it ends for all of them.
                if future not in self._given_up and future.status == "finished":
                    continue
                result = error
            except BaseException as error:
                result = error
            break
        self._fetching.pop(future, None)
        self._given_up.discard(future)
        self._arrived.put((future, result))

    def _give_up(self, future: "Future") -> None:
        task = self._fetching.get(future)
        if task is not None:
            self._given_up.add(future)
            task.cancel()
