"""Which tasks were on a worker when it died, from what the scheduler writes down of it."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from manyfit.cluster.inspection.scheduler_info import asked


class Deaths:
    """Counts for each task the workers that died while they had it.

    Parameters
    ----------
    client : distributed.Client
        Connected. Deaths before this are not counted: equal tasks have equal names.

    Notes
    -----
    A worker has tasks that it runs and one or two that wait for that, so that a death is no proof. Workers
    that are retired, as a cluster that shrinks does with them, do not die.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._present: frozenset[str] = frozenset()
        self._until = max((time for time, _ in self._events()), default=0.0)
        self._counts: Counter[str] = Counter()

    def of(self, key: str) -> int:
        """How many workers died while they had this task."""
        return self._counts[key]

    def look(self, workers: Iterable[str]) -> bool:
        """Count what happened since the last time, if other workers are there now; whether any died."""
        present = frozenset(workers)
        if present == self._present:
            return False
        self._present = present
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
        events = asked(self._client, self._client.scheduler.events, topic="all")
        return [(time, event) for time, event in events if isinstance(event, dict)]
