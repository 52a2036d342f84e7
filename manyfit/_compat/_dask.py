"""Dask's clusters: how long they wait for a worker that is being restarted."""

from typing import Any

__all__ = ["wait_for_restarts"]


def wait_for_restarts(cluster: Any) -> None:
    """Keep one of Dask's clusters from giving up on a worker while its nanny restarts it.

    Dask looks for a worker 15 seconds after its process ended and closes it for good if it is not there,
    which is also so if the process has ended a second time and is just starting.
    """
    if "_update_worker_status" in vars(cluster):
        return
    import dask.config

    update = cluster._update_worker_status

    def update_and_wait(op: str, message: Any) -> None:
        with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"}):
            update(op, message)

    cluster._update_worker_status = update_and_wait
