"""Where tasks run: this process, joblib's workers; clusters of Dask are started and described."""

from manyfit.cluster._describe import ClusterDescription, WorkerDescription, describe
from manyfit.cluster._local import run_tasks, workers
from manyfit.cluster._progress import Progress
from manyfit.cluster._start import local_cluster

__all__ = [
    "ClusterDescription",
    "Progress",
    "WorkerDescription",
    "describe",
    "local_cluster",
    "run_tasks",
    "workers",
]
