"""Where tasks run: this process, joblib's workers, or those of a Dask cluster, started and described here."""

from manyfit.cluster._describe import ClusterDescription, describe
from manyfit.cluster._local_cluster import local_cluster
from manyfit.cluster.worker.errors import WorkerDied

__all__ = ["ClusterDescription", "WorkerDied", "describe", "local_cluster"]
