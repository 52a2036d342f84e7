"""From a plan to its results: in this process, by joblib, or on a Dask cluster."""
