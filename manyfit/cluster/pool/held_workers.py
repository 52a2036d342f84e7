"""Tasks that sit on workers that do not get to them, to be handed out once more.

Dask leaves a task where it is as long as the scheduler has the worker: on one that is paused, on one that no
longer answers, and on one whose threads are all at functions that nobody wants any more.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from manyfit.cluster.inspection.scheduler_info import Workers, asked, call_soon_in_loop
from manyfit.cluster.worker._heartbeats import heartbeats_of
from manyfit.cluster.worker.cancelled_tasks import GRACE_S, Report, report

if TYPE_CHECKING:
    from distributed import Future

# A task that has waited on a worker that begins none for this long is handed out once more.
STUCK_S = 3.0
# If nothing has come for so long, workers are asked what they are at, and again after as long.
QUIET_S = 5.0
# A worker has so long to say so.
ASK_S = 3.0
# Seconds of silence after which the user hears of a worker.
TELL_SILENT_S = 60.0


class Stuck:
    """What is known of the workers that begin no tasks, as of the last look.

    Parameters
    ----------
    client : distributed.Client
        Connected.

    Attributes
    ----------
    workers : frozenset of str
        Addresses of these workers. Empty if all are such workers: no other is better.
    keys : frozenset of str
        Tasks of the run that sit on them.
    lost : frozenset of str
        Of these, tasks that are done, and whose results are on workers that do not answer.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._heartbeats = client, heartbeats_of(client)
        self.workers: frozenset[str] = frozenset()
        self.keys: frozenset[str] = frozenset()
        self.lost: frozenset[str] = frozenset()
        self._since: dict[str, float] = {}
        self._reports: dict[str, tuple[float, Report]] = {}  # never changed, replaced only: threads read it
        self._lock = threading.Lock()
        self._asking: set[str] = set()
        self._asked = 0.0
        self._all: frozenset[str] = frozenset()

    def look(self, workers: Workers, futures: "Iterable[Future]" = (), quiet_s: float = 0.0) -> None:
        """See which workers begin no tasks, and which tasks of the run are on them.

        Parameters
        ----------
        workers : mapping
            What the scheduler says of them.
        futures : iterable of Future
            Tasks that are under way.
        quiet_s : float
            Seconds for which no task has ended.
        """
        self._heartbeats.look(workers)
        self._all = frozenset(workers)
        silent = self.silent
        paused = {one for one, info in workers.items() if info["status"] == "paused"}
        self._ask(paused - silent, self._all - silent, quiet_s)
        reports = {one: told for one, (_, told) in self._reports.items() if one in self._all}
        held = {one for one, told in reports.items() if told.held}
        futures = list(futures)
        keys, self.lost = (
            self._on_silent(silent, futures) if silent and futures else (set[str](), frozenset())
        )
        keys |= self._on_others({one: reports[one] for one in reports if one in paused | held})
        self.keys = frozenset(keys & {str(future.key) for future in futures})
        bad = silent | paused | held
        self.workers = bad if bad < self._all else frozenset()

    def _ask(self, paused: Iterable[str], others: Iterable[str], quiet_s: float) -> None:
        now = time.monotonic()
        with self._lock:
            known = self._reports.items()
            self._reports = {one: said for one, said in known if now - said[0] < 3 * QUIET_S}
        wanted = set(paused)
        if quiet_s > QUIET_S and now - self._asked > QUIET_S:
            self._asked = now
            wanted |= set(others)
        for address in wanted - self._asking:
            self._asking.add(address)
            call_soon_in_loop(self._client, self._ask_one, address)

    async def _ask_one(self, address: str) -> None:
        try:
            with contextlib.suppress(Exception):  # it goes away now, or is busy
                call = self._client.run(report, workers=[address], on_error="ignore")
                said = (await asyncio.wait_for(call, ASK_S)).get(address)
                if isinstance(said, Report):
                    with self._lock:
                        self._reports = {**self._reports, address: (time.monotonic(), said)}
        finally:
            self._asking.discard(address)

    def _on_silent(self, silent: Iterable[str], futures: "list[Future]") -> tuple[set[str], frozenset[str]]:
        """Tasks on workers that do not answer, and those of them whose results are there."""
        scheduler = self._client.scheduler
        try:
            there = asked(self._client, scheduler.processing, workers=sorted(silent))
        except KeyError:  # one of them was removed since they were listed, and its tasks are others' now
            there = {}
        done = [future.key for future in futures if future.status == "finished"]
        has = asked(self._client, scheduler.who_has, keys=done) if done else {}
        lost = frozenset(str(key) for key, holders in has.items() if holders and set(holders) <= set(silent))
        return {str(key) for keys in there.values() for key in keys} | lost, lost

    def _on_others(self, reports: dict[str, Report]) -> set[str]:
        """Tasks that have waited for long on workers that answer and begin none."""
        now = time.monotonic()
        waiting = {key for told in reports.values() for key in told.waiting}
        self._since = {key: self._since.get(key, now) for key in waiting}
        return {key for key, since in self._since.items() if now - since > STUCK_S}

    @property
    def silent(self) -> frozenset[str]:
        """Addresses of the workers that no longer answer."""
        return self._heartbeats.silent & self._all

    # ------------------------------------------------------------------------------- in words

    def reasons(self) -> dict[str, str]:
        """For each worker that is waited for without hope of its own: why, in words."""
        found = {}
        for address in sorted(self.silent):
            silence = self._heartbeats.silence(address)
            if silence > TELL_SILENT_S:
                found[address] = f"has not answered for {silence:.0f} s"
        for address, (_, told) in sorted(self._reports.items()):
            longest = max(told.unwanted.values(), default=0.0)
            # Where its process will start again there is nothing to do but wait.
            if told.held and address in self._all and not (told.ends and longest < 2 * GRACE_S):
                names = ", ".join(sorted({key.rpartition("-")[0] or key for key in told.unwanted}))
                found[address] = f"is busy with a task that was cancelled {longest:.0f} s ago ({names})"
        return found


def tell(warn: Callable[[str], None], who: str, address: str, reasons: dict[str, str]) -> None:
    """Warn of workers that begin no tasks."""
    listed = "; ".join(f"{worker} {why}" for worker, why in list(reasons.items())[:5])
    more = f"; and {len(reasons) - 5} more" if len(reasons) > 5 else ""
    warn(
        f"{who} at {address} does without workers that begin no tasks, or waits for them: {listed}{more}. "
        "client.restart() starts workers that have a nanny anew, and lets go of all tasks and data of the "
        "cluster; without a nanny, end the process of the worker and start another."
    )
