"""Searches on a Dask cluster: what is sent to workers, and what they do."""
