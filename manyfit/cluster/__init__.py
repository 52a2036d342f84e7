"""Where tasks run: this process, joblib's workers, or those of a Dask cluster, started and described here."""

from manyfit.cluster._describe import ClusterDescription, describe
from manyfit.cluster._died import WorkerDied
from manyfit.cluster._start import local_cluster

__all__ = ["ClusterDescription", "WorkerDied", "describe", "local_cluster"]
