"""An imitated large cluster: a scheduler and many workers, whose tasks should only sleep.

``python -m benchmarks._large_cluster`` is one of its processes. It prints its address, and ends when its
standard input does, so that it does not outlive the process that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

THREADS = 4
# Workers of one process. With more, the result would depend on its interpreter, not on the scheduler.
WORKERS_PER_PROCESS = 16
ROOT = Path(__file__).resolve().parents[1]
_MODULE = "benchmarks._large_cluster"
_PATIENCE_S = 120.0


class LargeCluster:
    """A scheduler in a process of its own; workers of four slots each come in others."""

    def __init__(self, stack: ExitStack) -> None:
        from distributed import Client

        self._stack = stack
        self._folder = stack.enter_context(tempfile.TemporaryDirectory())
        self._processes: list[psutil.Process] = []
        self._address = self._start()
        self.client = stack.enter_context(Client(self._address, set_as_default=False))
        self.slots = 0

    def _start(self, *arguments: str) -> str:
        process, address = self._stack.enter_context(_process(self._folder, *arguments))
        self._processes.append(psutil.Process(process.pid))
        return address

    def grow(self, slots: int) -> None:
        """Add workers until there are so many slots."""
        wanted = slots // THREADS
        while (there := self.slots // THREADS) < wanted:
            n = min(WORKERS_PER_PROCESS, wanted - there)
            self._start(self._address, str(n))
            self.slots += n * THREADS
        self.client.wait_for_workers(wanted, timeout=_PATIENCE_S)

    def cpu_seconds(self) -> dict[str, float]:
        """Processor time of the client (this process), the scheduler and all workers."""
        client, scheduler, *workers = map(_cpu_seconds, [psutil.Process(), *self._processes])
        return {"client": client, "scheduler": scheduler, "workers": sum(workers)}


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def large_cluster() -> Iterator[LargeCluster]:
    """A scheduler and a client, without workers at first; all processes end with the context."""
    with ExitStack() as stack:
        yield LargeCluster(stack)


@contextmanager
def _process(folder: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """One process, and the address that it prints when it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", _MODULE, folder, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin and process.stdout
    try:
        said = process.stdout.readline().strip()
        if not said:
            raise RuntimeError(f"a process of the large cluster ended with {process.wait()}")
        yield process, said
    finally:
        process.stdin.close()
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


async def _serve(folder: str, address: str | None, n: int) -> None:
    from distributed import Scheduler, Worker

    async with contextlib.AsyncExitStack() as stack:
        servers: list[Any] = (
            [Scheduler(host="127.0.0.1", port=0, dashboard=False)]
            if address is None
            else [Worker(address, nthreads=THREADS, memory_limit=0, local_directory=folder) for _ in range(n)]
        )
        await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
        print(servers[0].address, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Run the scheduler or, given its address, some workers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._large_cluster", description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("address", nargs="?")
    parser.add_argument("n", nargs="?", type=int, default=0)
    asked = parser.parse_args()
    asyncio.run(_serve(asked.folder, asked.address, asked.n))


if __name__ == "__main__":
    main()
