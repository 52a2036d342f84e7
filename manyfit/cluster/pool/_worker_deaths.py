"""Tasks that were on a worker when it died, from the event log of the scheduler."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from manyfit.cluster.inspection.scheduler_info import ask_scheduler


class WorkerDeaths:
    """Counts, for each task, the workers that died while they had it, from the construction on.

    A worker has the tasks that it runs and one or two that wait, so that a death proves nothing of one task.
    Retired workers, as of a cluster that shrinks, do not count as dead.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._workers: frozenset[str] = frozenset()
        self._until = max((time for time, _ in self._events()), default=0.0)
        self._counts: Counter[str] = Counter()

    def count(self, key: str) -> int:
        """Return the number of workers that died while they had this task."""
        return self._counts[key]

    def update(self, workers: Iterable[str]) -> bool:
        """Count the deaths since the last call, if the workers changed; return whether there were any."""
        current = frozenset(workers)
        if current == self._workers:
            return False
        self._workers = current
        died = False
        for time, event in self._events():
            if time <= self._until:
                continue
            self._until = time
            if event.get("action") == "remove-worker" and not event.get("expected"):
                self._counts.update(str(key) for key in event["processing-tasks"])
                died = True
        return died

    def _events(self) -> list[tuple[float, dict[str, Any]]]:
        events = ask_scheduler(self._client, self._client.scheduler.events, topic="all")
        return [(time, event) for time, event in events if isinstance(event, dict)]
