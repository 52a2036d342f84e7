"""Where tasks run: this process, joblib's workers, or those of a Dask cluster."""

from manyfit.cluster._died import Died, WorkerDied, end_if_device_is_lost
from manyfit.cluster._local import run_tasks, workers
from manyfit.cluster._progress import Progress
from manyfit.cluster._remote import client_for, run_on_cluster, slots

__all__ = [
    "Died",
    "Progress",
    "WorkerDied",
    "client_for",
    "end_if_device_is_lost",
    "run_on_cluster",
    "run_tasks",
    "slots",
    "workers",
]
