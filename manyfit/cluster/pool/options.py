"""Rules by which a search and a call of Parallel differ in how they use a pool of tasks."""

from dataclasses import dataclass

from manyfit.cluster.pool.resource_queue import LONG_S

WorkerNames = tuple[str | int, ...] | None
"""Addresses or names of workers; None is all workers."""


@dataclass(frozen=True)
class PoolOptions:
    """Rules of one pool; the defaults are those of a search."""

    subject: str = "search"  # for messages
    worker_names: WorkerNames = None  # the only workers that may be used
    no_worker_timeout: float | None = None  # seconds without a worker until an error; None waits and warns
    n_jobs: int | None = None  # tasks at a time for all queues, as joblib counts them; None is no limit
    long_s: float = LONG_S  # seconds from which on an item is long: more tasks of long items wait for a slot
    most_tries: int = 20  # tries of a task that is cancelled by others, or cannot get its data
    isolates: bool = True  # whether items run alone after workers died with them, before they are given up
    reserves: bool = True  # whether tasks without resources avoid the workers that others need
    strict_versions: bool = True  # whether workers with other versions are an error, not a warning
