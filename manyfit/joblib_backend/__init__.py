"""joblib's backend contract on a Dask cluster: importing this registers the backend ``"manyfit"``."""

from joblib import register_parallel_backend

from manyfit.joblib_backend._backend import ManyfitBackend

__all__ = ["ManyfitBackend"]

register_parallel_backend("manyfit", ManyfitBackend)
