"""Workers that begin no tasks, and the tasks that wait on them.

Dask leaves a task where it is as long as the scheduler has the worker: on one that is paused, on one that no
longer answers, and on one whose threads all run cancelled functions.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from manyfit.cluster.inspection.scheduler_info import Workers, ask_scheduler, call_soon_in_loop
from manyfit.cluster.worker._heartbeats import get_heartbeats
from manyfit.cluster.worker.cancelled_tasks import GRACE_S, TaskReport, report_tasks

if TYPE_CHECKING:
    from distributed import Future

# Seconds that a task waits on a worker that begins none before it is sent to another one, too.
STUCK_S = 3.0
# Seconds without a result after which workers have to report, and between two such reports.
QUIET_S = 5.0
# Seconds that a worker has to answer.
ASK_S = 3.0
# Seconds of silence after which the user is warned of a worker.
WARN_SILENT_S = 60.0


class HeldWorkers:
    """Workers that begin no tasks, as of the last update."""

    def __init__(self, client: Any) -> None:
        self._client, self._heartbeats = client, get_heartbeats(client)
        self.workers: frozenset[str] = frozenset()  # their addresses; empty if all workers are held up
        self.keys: frozenset[str] = frozenset()  # tasks of the run that wait on them
        self.lost: frozenset[str] = frozenset()  # tasks among these whose results only silent workers have
        self._since: dict[str, float] = {}
        # Reports by address, with their time. Replaced, never changed: several threads read it.
        self._reports: dict[str, tuple[float, TaskReport]] = {}
        self._lock = threading.Lock()
        self._asking: set[str] = set()
        self._last_request = 0.0
        self._all: frozenset[str] = frozenset()

    def update(self, workers: Workers, futures: "Iterable[Future]" = (), quiet_s: float = 0.0) -> None:
        """Find out which workers begin no tasks, and which of these tasks of the run wait on them.

        No task has ended for `quiet_s` seconds.
        """
        self._heartbeats.update(workers)
        self._all = frozenset(workers)
        silent = self.silent
        paused = {one for one, info in workers.items() if info["status"] == "paused"}
        self._ask(paused - silent, self._all - silent, quiet_s)
        reports = {one: report for one, (_, report) in self._reports.items() if one in self._all}
        held = {one for one, report in reports.items() if report.held}
        futures = list(futures)
        keys, self.lost = (
            self._on_silent(silent, futures) if silent and futures else (set[str](), frozenset())
        )
        keys |= self._waiting_long({one: reports[one] for one in reports if one in paused | held})
        self.keys = frozenset(keys & {str(future.key) for future in futures})
        bad = silent | paused | held
        self.workers = bad if bad < self._all else frozenset()

    def _ask(self, paused: Iterable[str], others: Iterable[str], quiet_s: float) -> None:
        """Ask paused workers for a report, and all others after a while without results."""
        now = time.monotonic()
        with self._lock:
            known = self._reports.items()
            self._reports = {one: entry for one, entry in known if now - entry[0] < 3 * QUIET_S}
        wanted = set(paused)
        if quiet_s > QUIET_S and now - self._last_request > QUIET_S:
            self._last_request = now
            wanted |= set(others)
        for address in wanted - self._asking:
            self._asking.add(address)
            call_soon_in_loop(self._client, self._ask_one, address)

    async def _ask_one(self, address: str) -> None:
        try:
            with contextlib.suppress(Exception):  # the worker goes away now, or is busy
                call = self._client.run(report_tasks, workers=[address], on_error="ignore")
                report = (await asyncio.wait_for(call, ASK_S)).get(address)
                if isinstance(report, TaskReport):
                    with self._lock:
                        self._reports = {**self._reports, address: (time.monotonic(), report)}
        finally:
            self._asking.discard(address)

    def _on_silent(self, silent: Iterable[str], futures: "list[Future]") -> tuple[set[str], frozenset[str]]:
        """Find the tasks on workers that do not answer, and those whose results only such workers have."""
        scheduler = self._client.scheduler
        try:
            processing = ask_scheduler(self._client, scheduler.processing, workers=sorted(silent))
        except KeyError:  # the scheduler removed one of them meanwhile, and gave its tasks to others
            processing = {}
        done = [future.key for future in futures if future.status == "finished"]
        has = ask_scheduler(self._client, scheduler.who_has, keys=done) if done else {}
        lost = frozenset(str(key) for key, holders in has.items() if holders and set(holders) <= set(silent))
        return {str(key) for keys in processing.values() for key in keys} | lost, lost

    def _waiting_long(self, reports: dict[str, TaskReport]) -> set[str]:
        """Find the tasks that wait for long on workers that answer and begin none."""
        now = time.monotonic()
        waiting = {key for report in reports.values() for key in report.waiting}
        self._since = {key: self._since.get(key, now) for key in waiting}
        return {key for key, since in self._since.items() if now - since > STUCK_S}

    @property
    def silent(self) -> frozenset[str]:
        """Addresses of the workers that no longer answer."""
        return self._heartbeats.silent & self._all

    def reasons(self) -> dict[str, str]:
        """Say why workers begin no tasks, by address, where they will not begin any by themselves."""
        found = {}
        for address in sorted(self.silent):
            silence = self._heartbeats.silence(address)
            if silence > WARN_SILENT_S:
                found[address] = f"has not answered for {silence:.0f} s"
        for address, (_, report) in sorted(self._reports.items()):
            longest = max(report.unwanted.values(), default=0.0)
            # A process that will start again needs nothing but time.
            if report.held and address in self._all and not (report.ends and longest < 2 * GRACE_S):
                names = ", ".join(sorted({key.rpartition("-")[0] or key for key in report.unwanted}))
                found[address] = f"is busy with a task that was cancelled {longest:.0f} s ago ({names})"
        return found


def describe_held_workers(reasons: dict[str, str]) -> str:
    """Say which workers begin no tasks, why, and what to do, as the end of a warning."""
    listed = "; ".join(f"{worker} {why}" for worker, why in list(reasons.items())[:5])
    more = f"; and {len(reasons) - 5} more" if len(reasons) > 5 else ""
    return (
        f"avoids or waits for workers that begin no tasks: {listed}{more}. "
        "client.restart() restarts workers that have a nanny, and drops all tasks and data of the cluster. "
        "Without a nanny, end the process of the worker and start another."
    )
