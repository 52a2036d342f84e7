"""Values that a task leaves on its worker: Dask moves them to the later task that reads them."""

from collections.abc import Mapping
from typing import Any

from manyfit.cluster.worker.task_context import still_wanted


def keep_on_worker(values: Mapping[str, Any], client: str) -> Mapping[str, int]:
    """Keep values on the worker of this thread, until the client of an id releases them; return their bytes.

    Nothing is kept if nobody waits for the task of this thread any more.
    """
    from distributed import get_worker
    from distributed.utils import sync

    if not values or not still_wanted():
        return {}
    worker, data = get_worker(), dict[Any, Any](values)

    async def keep() -> Mapping[str, int]:
        nbytes: Mapping[str, int] = worker.update_data(data=data)["nbytes"]
        who_has = {key: [worker.address] for key in values}
        await worker.scheduler.update_data(who_has=who_has, nbytes=nbytes, client=client)
        return nbytes

    found: Mapping[str, int] = sync(worker.loop, keep)
    return found
