"""Dask clusters: start one, describe its workers, and run searches on them."""

from manyfit.cluster._describe import ClusterDescription, describe
from manyfit.cluster._local_cluster import local_cluster
from manyfit.cluster.worker.errors import WorkerDied

__all__ = ["ClusterDescription", "WorkerDied", "describe", "local_cluster"]
