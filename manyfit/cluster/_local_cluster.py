"""Start a cluster that suits this machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from inspect import isawaitable
from numbers import Integral
from typing import TYPE_CHECKING, Any

from joblib import cpu_count

from manyfit._compat import wait_for_restarts
from manyfit.cluster.inspection.gpu_workers import gpu_count, gpu_options, wants_gpus
from manyfit.cluster.inspection.versions import require_distributed

if TYPE_CHECKING:
    from distributed import Client, Security
    from distributed.deploy.cluster import Cluster

__all__ = ["local_cluster"]

# BLAS libraries and OpenMP read these when they are loaded, so they are set before a worker's process starts.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_PRE_SPAWN = "distributed.nanny.pre-spawn-environ"
# With Dask's default of this variable, glibc maps every large array anew and unmaps it at once: fits that
# make many take twice as long. A value of the user is kept.
_TRIM, _TRIM_OF_DASK = "MALLOC_TRIM_THRESHOLD_", 65536
# By default Dask samples threads and checks event loops so often that an idle cluster keeps a small machine
# busy. Longer intervals show as much of what takes seconds.
_OFTEN = {"distributed.worker.profile.interval": "10ms", "distributed.admin.tick.interval": "20ms"}
_SELDOM = {"distributed.worker.profile.interval": "50ms", "distributed.admin.tick.interval": "200ms"}
# Any free port of this host. Dask's default, 8787, is open to the network, and causes a warning if it is
# taken.
_DASHBOARD = "127.0.0.1:0"


def local_cluster(
    n_workers: int | None = None,
    *,
    threads_per_worker: int | None = None,
    memory_limit: Any = "auto",
    security: "bool | Security | None" = None,
    gpu: bool | None = None,
    slots_per_gpu: int = 1,
    rmm_pool_size: Any = "auto",
    device_memory_limit: Any = "default",
    **kwargs: Any,
) -> "Client":
    """Start a Dask cluster that suits this machine, and connect to it.

    It has one worker for each GPU, if dask-cuda is installed, or else one worker for each core. The cores are
    divided among the threads of workers for BLAS and OpenMP: one core each with the defaults on CPUs.

    Parameters
    ----------
    n_workers : int or None, default=None
        Number of worker processes. None is one for each GPU, or as many as fit on the cores with
        `threads_per_worker`.
    threads_per_worker : int or None, default=None
        Tasks that a worker runs at a time. None is 1, on GPUs `slots_per_gpu`.
    memory_limit : int, float, str or None, default="auto"
        Host memory of each worker, in bytes, as "4GB", or as a share of the machine's memory; None is no
        limit. "auto" divides the machine's memory among the workers and this process, which holds data, too.
        A worker writes results to disk before it reaches its limit, and is restarted if it exceeds it.
    security : bool, distributed.Security or None, default=None
        True makes a key and a certificate for this cluster, kept in memory: all connections of client,
        scheduler and workers use TLS, and need them. Without TLS, other users of the machine can run code as
        you. False is no encryption, and None uses Dask's configuration.
    gpu : bool or None, default=None
        False: CPU workers. True: GPU workers, or an error. None: GPU workers if dask-cuda is installed and
        there are GPUs.
    slots_per_gpu : int, default=1
        Number of tasks that may use a GPU at a time, declared as the resource ``GPU`` of its worker.
    rmm_pool_size : int, float, str or None, default="auto"
        Initial device memory of RMM's pool, which CuPy shares: bytes, "10GB", or a share of the device.
        "auto" is half of the device.
    device_memory_limit : int, float, str or None, default="default"
        Device memory in use from which on results are moved to the host, as in dask-cuda; "default" is 80 %
        of the device.
    **kwargs : dict
        Options of ``distributed.LocalCluster`` or ``dask_cuda.LocalCUDACluster``, such as `dashboard_address`
        (by default any free port of 127.0.0.1; the dashboard needs bokeh, and does not use TLS).

    Returns
    -------
    distributed.Client
        Connected, and Dask's current client. Closing it, leaving it as a context manager, or the end of the
        interpreter closes the cluster. ``client.cluster`` is Dask's cluster.

    Raises
    ------
    ImportError
        If distributed is not installed, ``gpu=True`` without dask-cuda, or ``security=True`` without the
        package cryptography.
    RuntimeError
        If ``gpu=True`` and there is no GPU, or the cluster does not start.

    See Also
    --------
    describe : Describe the workers of a cluster.

    Notes
    -----
    Worker processes import the script that starts them, so a script must call this under
    ``if __name__ == "__main__":``. CPU workers ignore the options of GPUs. A smaller number of threads in the
    environment (``OMP_NUM_THREADS`` and similar variables) is kept.

    Examples
    --------
    >>> from manyfit.cluster import local_cluster
    >>> with local_cluster(2) as client:  # doctest: +SKIP
    ...     search.fit(X, y)
    """
    require_distributed("local_cluster")
    import dask
    from distributed import LocalCluster
    from distributed.system import MEMORY_LIMIT

    from manyfit.cluster.worker.run_items import IgnoreInterrupts

    if "asynchronous" in kwargs:
        raise TypeError(
            "local_cluster takes no asynchronous=: await distributed.LocalCluster(asynchronous=True) instead"
        )
    _check_counts(n_workers=n_workers, threads_per_worker=threads_per_worker, slots_per_gpu=slots_per_gpu)
    with_gpus = wants_gpus(gpu)
    if with_gpus:
        from dask_cuda import LocalCUDACluster

        cluster_class = LocalCUDACluster
        threads = _gpu_threads(threads_per_worker, slots_per_gpu)
        workers = n_workers or gpu_count()
        kwargs = gpu_options(slots_per_gpu, rmm_pool_size, device_memory_limit, kwargs)
    else:
        cluster_class = LocalCluster
        threads = threads_per_worker or 1
        workers = n_workers or max(1, cpu_count() // threads)
    options = {
        "n_workers": workers,
        "threads_per_worker": threads,
        "memory_limit": int(MEMORY_LIMIT) // (workers + 1) if memory_limit == "auto" else memory_limit,
        "security": _security(security),
        "dashboard_address": _DASHBOARD,
        **kwargs,
    }
    with _worker_environment(max(1, cpu_count() // (workers * threads))):
        if not with_gpus and options.get("processes", True):
            # Otherwise a restarted worker would get Dask's configuration at that time.
            options.setdefault("config", deepcopy(dask.config.config))
        cluster = _start(cluster_class, options)
    client = None
    try:
        # On one machine, data need not go through the scheduler.
        client = _client_class()(cluster, direct_to_workers=True)
        client.register_plugin(IgnoreInterrupts())
        return client
    except BaseException:
        (client or cluster).close()  # the client closes both
        raise


def _check_counts(**counts: Any) -> None:
    for name, value in counts.items():
        if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
            raise ValueError(f"local_cluster: {name} must be an integer of at least 1, not {value!r}")


def _gpu_threads(threads: int | None, slots: int) -> int:
    if threads is not None and threads < slots:
        raise ValueError(
            f"local_cluster: threads_per_worker={threads} cannot run slots_per_gpu={slots} tasks at a time"
        )
    return threads or slots


def _security(security: "bool | Security | None") -> "Security | None":
    from distributed import Security

    if security is None or isinstance(security, Security):
        return security
    if security is False:
        return Security(require_encryption=False)
    if security is not True:
        raise TypeError(
            f"local_cluster: security must be True, False, None or a distributed.Security, not {security!r}"
        )
    try:
        return Security.temporary()
    except ImportError as error:
        raise ImportError(
            "local_cluster(security=True) makes a certificate with the package cryptography, which is not "
            "installed: pip install cryptography"
        ) from error


@contextmanager
def _worker_environment(threads: int) -> Iterator[None]:
    """Give worker processes that start in this context so many threads of BLAS and OpenMP each.

    Dask's nanny writes a worker's environment into that of this process, where other subprocesses and the
    workers of the next cluster would inherit it: it is restored at the end.
    """
    import dask
    import distributed  # noqa: F401  # its import adds to the configuration, and that would be undone below

    # These are Dask's defaults; the environment of this process takes precedence.
    given = dict(dask.config.get(_PRE_SPAWN, {}))
    if given.get(_TRIM) == _TRIM_OF_DASK:
        del given[_TRIM]
    wanted = {name: _fewer(threads, os.environ.get(name)) for name in THREAD_VARIABLES}
    # PYTHONHASHSEED is set by the nanny itself.
    before = {name: os.environ.get(name) for name in (*given, *wanted, "PYTHONHASHSEED")}
    for name in wanted:
        os.environ.pop(name, None)
    try:
        # A value of the user is kept.
        seldom = {key: _SELDOM[key] for key, often in _OFTEN.items() if dask.config.get(key, often) == often}
        with dask.config.set({_PRE_SPAWN: {**given, **wanted}, **seldom}):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _fewer(threads: int, given: str | None) -> int:
    # OpenMP takes a list, a number for each level of nesting.
    first = (given or "").partition(",")[0].strip()
    return min(threads, int(first)) if first.isdigit() and int(first) else threads


def _start(cls: Any, options: dict[str, Any]) -> "Cluster":
    try:
        cluster: Cluster = cls(**options)
        wait_for_restarts(cluster)
        return cluster
    except RuntimeError as error:
        root: BaseException = error
        while root.__cause__ is not None:
            root = root.__cause__
        raise RuntimeError(
            f"local_cluster: the cluster did not start: {root}. Worker processes import the script that "
            'starts them, so that a script has to call local_cluster under if __name__ == "__main__":'
        ) from error


@cache
def _client_class() -> Any:
    # Made on first use: importing distributed takes half a second.
    from distributed import Client, Status

    class LocalClient(Client):
        """A client that also closes its cluster."""

        def close(self, *args: Any, **kwargs: Any) -> Any:
            closing = super().close(*args, **kwargs)
            if isawaitable(closing):  # called in the event loop, which must not wait for itself
                return _close_both(closing, self.cluster)
            # A garbage-collected client is closed again, maybe while Dask holds the lock that closing a
            # cluster takes, even a closed one.
            if self.cluster is None or self.cluster.status == Status.closed:
                return None
            return self.cluster.close()

    return LocalClient


async def _close_both(closing: Any, cluster: Any) -> None:
    await closing
    if cluster is not None:
        await cluster.close()
