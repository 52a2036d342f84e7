"""Dask clusters: start one, describe its workers, and run searches on them."""

from typing import TYPE_CHECKING

from manyfit.cluster.worker.errors import WorkerDied

if TYPE_CHECKING:
    from manyfit.cluster._describe import ClusterDescription, describe
    from manyfit.cluster._local_cluster import local_cluster
else:  # searches on this machine do without these
    from manyfit.introspection.late_names import late_names

    __getattr__, __dir__ = late_names(__name__, "_local_cluster", "_describe")

__all__ = ["ClusterDescription", "WorkerDied", "describe", "local_cluster"]
