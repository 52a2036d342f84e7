"""Wait until a cluster has workers for a call of Parallel."""

import time
from typing import Any

from manyfit.cluster.inspection.scheduler_info import get_workers
from manyfit.cluster.pool.options import WorkerNames
from manyfit.cluster.pool.resource_queue import Resources, worker_slots
from manyfit.cluster.pool.worker_monitor import no_worker_error, select_workers

# Seconds between two checks for a first worker.
WAIT_S = 0.1


def wait_for_slots(client: Any, names: WorkerNames, resources: Resources, timeout: float) -> int:
    """Count the tasks that workers with these names run at a time; wait `timeout` seconds for a first one."""

    def count() -> int:
        workers = select_workers(get_workers(client), names)
        return sum(worker_slots(info, resources) for info in workers.values())

    n = count()
    if n:
        return n
    # A cluster that grows by demand needs to see some.
    probe = client.submit(_do_nothing, resources=dict(resources) or None, pure=False)
    try:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            n = count()
            if n:
                return n
            time.sleep(WAIT_S)
        raise no_worker_error(client.scheduler.address, resources, names, timeout)
    finally:
        probe.cancel()
        probe.release()


def _do_nothing() -> None:
    pass
