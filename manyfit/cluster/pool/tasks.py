"""Tasks of a pool, their calls and results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from manyfit.cluster.pool.resource_queue import ResourceQueue
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.cluster.worker.run_items import TaskRun

# A task is split after this many workers died while they had it: its items then run one by one. An item is
# given up after MOST_DEATHS, which leaves two deaths for its own task: the first of these workers may have
# died of the item before, which Dask gave to it before the pool took that item back. Dask itself gives a task
# up after as many deaths (`distributed.scheduler.allowed-failures`).
SUSPECT_DEATHS, MOST_DEATHS = 2, 4


@dataclass(frozen=True)
class Task:
    """Items that one Dask task runs, and what happened to them in earlier tries."""

    items: tuple[Any, ...]
    queue: ResourceQueue  # the queue that they come from
    sent: Any = None  # what Dask calls their data, as of the last try
    tries: int = 0  # number of earlier tries
    deaths: int = 0  # number of workers that died while they had the items
    suspect: bool = False  # one item in a task of its own, because workers died with it
    only: tuple[str, ...] = ()  # addresses of the only workers that may run it; empty if Dask may choose

    @property
    def is_to_blame(self) -> bool:
        """Whether enough workers died to split the task or, if it has a single item, to give it up."""
        return self.deaths >= (MOST_DEATHS if self.suspect else SUSPECT_DEATHS)


TaskOutcome = TaskRun | WorkerLost | Exception
"""Result of a task, the loss of the workers that ran it, or the error that its function raised."""


@dataclass(frozen=True)
class Call:
    """Function call that Dask makes for a task; it returns a `TaskRun`."""

    function: Callable[..., TaskRun]
    arguments: tuple[Any, ...]
    key: str
    sent: Any = None  # what Dask calls the data of the task now
    priority: int = 0


class TaskMaker(Protocol):
    """Search or call of Parallel that uses a pool: it knows what the items are."""

    def make_call(self, task: Task) -> Call:
        """Make the call for a task, and send its data if that is due."""

    def resend(self, task: Task, missing: Sequence[str]) -> None:
        """Send the parts of a task's data that its worker could not get."""

    def label(self, task: Task) -> str:
        """Name a task for the dashboard and for messages."""
