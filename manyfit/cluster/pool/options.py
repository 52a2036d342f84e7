"""Rules by which a search and a call of Parallel differ in how they use a pool of tasks."""

from dataclasses import dataclass

WorkerNames = tuple[str | int, ...] | None
"""Addresses or names of workers; None is all workers."""


@dataclass(frozen=True)
class PoolOptions:
    """Rules of one pool; the defaults are those of a search."""

    subject: str = "search"  # for messages
    worker_names: WorkerNames = None  # the only workers that may be used
    no_worker_timeout: float | None = None  # seconds without a worker until an error; None waits and warns
    n_jobs: int = -1  # tasks at a time, as joblib counts them
    isolates: bool = True  # whether items get tasks of their own after workers died with them
    strict_versions: bool = True  # whether workers with other versions are an error, not a warning
