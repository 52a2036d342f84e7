"""Where tasks run: this process, joblib's workers, or those of a Dask cluster, started and described here."""

from manyfit.cluster._describe import ClusterDescription, WorkerDescription, describe
from manyfit.cluster._died import Died, WorkerDied, end_if_device_is_lost
from manyfit.cluster._gpu_workers import GPU
from manyfit.cluster._here import Partly, alone, left_here, wanted
from manyfit.cluster._local import run_tasks, workers
from manyfit.cluster._progress import Progress
from manyfit.cluster._remote import client_for, run_on_cluster, slots
from manyfit.cluster._start import local_cluster
from manyfit.cluster._takes_gpu import (
    any_of_gpu,
    is_drop_in,
    of_gpu,
    params_of,
    steps_of,
    takes_device_data,
    takes_them_by_dispatch,
    takes_them_by_itself,
)
from manyfit.cluster._versions import require_versions, version_differences, versions_here

__all__ = [
    "GPU",
    "ClusterDescription",
    "Died",
    "Partly",
    "Progress",
    "WorkerDescription",
    "WorkerDied",
    "alone",
    "any_of_gpu",
    "client_for",
    "describe",
    "end_if_device_is_lost",
    "is_drop_in",
    "left_here",
    "local_cluster",
    "of_gpu",
    "params_of",
    "require_versions",
    "run_on_cluster",
    "run_tasks",
    "slots",
    "steps_of",
    "takes_device_data",
    "takes_them_by_dispatch",
    "takes_them_by_itself",
    "version_differences",
    "versions_here",
    "wanted",
    "workers",
]
