"""Values that tasks of a client have kept on workers, as futures of the client."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from manyfit.cluster.inspection.scheduler_info import ask_scheduler, get_workers


class KeptValues:
    """Futures of values of one search; `prefix` begins their keys, and those of no others."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.client_id: str = client.id
        self.prefix = f"manyfit-kept-{uuid4().hex[:12]}"

    def future(self, key: str) -> Any:
        """The future of a value; the value is released with it."""
        from distributed import Future

        state: Any = "memory"  # with the name that the scheduler gives it
        return Future(key, self._client, state=state)

    def usable(self, futures: Iterable[Any]) -> list[Any]:
        """Those of some futures whose values are not lost."""
        return [one for one in futures if one.status == "finished"]

    def memory_of_workers(self) -> dict[str, float]:
        """The memory limit of each worker in bytes; workers without one are left out."""
        workers = get_workers(self._client).items()
        return {address: float(info["memory_limit"]) for address, info in workers if info["memory_limit"]}

    def close(self) -> None:
        """Release the values of tasks whose results nobody has read."""
        if self._client.status != "running":
            return
        with suppress(Exception):  # the cluster goes away now
            known = ask_scheduler(self._client, self._client.scheduler.who_has, keys=None)
            for key in known:
                if str(key).startswith(self.prefix):
                    self.future(key)
