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

from manyfit._compat import restart_waiting_class
from manyfit.cluster.inspection.gpu_workers import gpu_count, gpu_options, wants_gpus

if TYPE_CHECKING:
    from distributed import Client, Security
    from distributed.deploy.cluster import Cluster

# BLAS libraries and OpenMP read these when they are loaded: they must be there before a worker's process is.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_PRE_SPAWN = "distributed.nanny.pre-spawn-environ"
# With Dask's own choice of this, glibc maps every large array anew and unmaps it at once: fits that
# make many take twice as long. A value of the user's stays.
_TRIM, _TRIM_OF_DASK = "MALLOC_TRIM_THRESHOLD_", 65536
# What Dask does so often that a cluster without work keeps a small machine busy: it looks at what each
# thread is at, and whether each event loop still turns. Seldom tells as much of what takes seconds.
_OFTEN = {"distributed.worker.profile.interval": "10ms", "distributed.admin.tick.interval": "20ms"}
_SELDOM = {"distributed.worker.profile.interval": "50ms", "distributed.admin.tick.interval": "200ms"}
# Any free port: Dask's own choice, 8787, is warned about where it is taken, and open to the network.
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

    Where there are GPUs (and dask-cuda) it has one worker for each, else one worker for each core. BLAS and
    OpenMP get the cores that this leaves to each thread of a worker: one with the defaults on CPUs.

    Parameters
    ----------
    n_workers : int or None, default=None
        Processes. None is one for each GPU, or as many as the cores hold with `threads_per_worker`.
    threads_per_worker : int or None, default=None
        Tasks that a worker runs at a time. None is 1, on GPUs `slots_per_gpu`.
    memory_limit : int, float, str or None, default="auto"
        Host memory of each worker, in bytes or as "4GB", or as a share of the machine's; None is no limit.
        "auto" divides the machine's among the workers and this process, which holds data, too. A worker
        writes results to disk before it comes to its limit, and is started again if it goes beyond it.
    security : bool, distributed.Security or None, default=None
        True makes a key and a certificate for this cluster, kept in memory; every connection between client,
        scheduler and workers is then by TLS, and no one without them gets in. Without it, whoever else works
        on the machine can run code as you. False is no encryption, None what Dask's configuration says.
    gpu : bool or None, default=None
        False: CPU workers. True: GPU workers, or an error. None: GPU workers where dask-cuda and GPUs are
        there.
    slots_per_gpu : int, default=1
        How many tasks may use a GPU at a time, declared as the resource ``GPU`` of its worker.
    rmm_pool_size : int, float, str or None, default="auto"
        Device memory that RMM's pool, which CuPy shares, starts with: bytes, "10GB", or a share of the
        device. "auto" is half of it.
    device_memory_limit : int, float, str or None, default="default"
        Device memory from which on results go to the host, as in dask-cuda; "default" is 80 % of the device.
    **kwargs : dict
        More for ``distributed.LocalCluster`` or ``dask_cuda.LocalCUDACluster``, such as `dashboard_address`
        (any free port of 127.0.0.1 if not given; the dashboard needs bokeh, and is not by TLS).

    Returns
    -------
    distributed.Client
        Connected, and Dask's current client. Closing it, or leaving it as a context manager, closes the
        cluster; so does the end of the interpreter. ``client.cluster`` is Dask's cluster.

    Raises
    ------
    ImportError
        If GPUs are asked for without dask-cuda, or certificates without the package cryptography.
    RuntimeError
        If GPUs are asked for and there is none, or the cluster does not start.

    See Also
    --------
    describe : Which workers a cluster has.

    Notes
    -----
    Worker processes import the script that starts them, so that a script calls this under
    ``if __name__ == "__main__":``. The options of GPUs have no meaning where there are none. A number of
    threads in the environment (``OMP_NUM_THREADS`` and its kin) counts where it is smaller.

    Examples
    --------
    >>> from manyfit.cluster import local_cluster
    >>> with local_cluster(2) as client:  # doctest: +SKIP
    ...     search.fit(X, y)
    """
    if "asynchronous" in kwargs:
        raise TypeError(
            "local_cluster takes no asynchronous=: await distributed.LocalCluster(asynchronous=True) instead"
        )
    _check_counts(n_workers=n_workers, threads_per_worker=threads_per_worker, slots_per_gpu=slots_per_gpu)
    with_gpus = wants_gpus(gpu)
    if with_gpus:
        threads = _gpu_threads(threads_per_worker, slots_per_gpu)
        workers = n_workers or gpu_count()
        kwargs = gpu_options(slots_per_gpu, rmm_pool_size, device_memory_limit, kwargs)
    else:
        threads = threads_per_worker or 1
        workers = n_workers or max(1, cpu_count() // threads)
    options = {
        "n_workers": workers,
        "threads_per_worker": threads,
        "memory_limit": _memory_share(workers) if memory_limit == "auto" else memory_limit,
        "security": _security(security),
        "dashboard_address": _DASHBOARD,
        **kwargs,
    }
    with _suited(max(1, cpu_count() // (workers * threads))):
        if not with_gpus and options.get("processes", True):
            # Else a worker that is started again has what Dask's configuration says then.
            options.setdefault("config", deepcopy(_configuration()))
        cluster = _start(_cluster_class(with_gpus), options)
    client = None
    try:
        # On one machine nothing has to go through the scheduler.
        client = _client_class()(cluster, direct_to_workers=True)
        client.register_plugin(_not_interrupted())
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


def _memory_share(workers: int) -> int:
    from distributed.system import MEMORY_LIMIT

    return int(MEMORY_LIMIT) // (workers + 1)


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
def _suited(threads: int) -> Iterator[None]:
    """Worker processes that are started in this context have so many threads of BLAS and OpenMP each.

    Dask's nanny writes what it gives to a worker into the environment of its own process, this one, where it
    would reach other subprocesses and the workers of the next cluster: it is put back.
    """
    import dask
    import distributed  # noqa: F401  # adds its part to the configuration, which would go with what is set here

    # Dask's own values stand in its configuration, which the environment of this process goes before.
    given = dict(dask.config.get(_PRE_SPAWN, {}))
    if given.get(_TRIM) == _TRIM_OF_DASK:
        del given[_TRIM]
    wanted = {name: _fewer(threads, os.environ.get(name)) for name in THREAD_VARIABLES}
    # PYTHONHASHSEED is set by the nanny itself.
    before = {name: os.environ.get(name) for name in (*given, *wanted, "PYTHONHASHSEED")}
    for name in wanted:
        os.environ.pop(name, None)
    try:
        # A value of the user's stays.
        seldom = {key: _SELDOM[key] for key, often in _OFTEN.items() if dask.config.get(key, often) == often}
        with dask.config.set({_PRE_SPAWN: {**given, **wanted}, **seldom}):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _fewer(threads: int, asked: str | None) -> int:
    # OpenMP takes a list, a number for each level of nesting.
    first = (asked or "").partition(",")[0].strip()
    return min(threads, int(first)) if first.isdigit() and int(first) else threads


@cache
def _cluster_class(with_gpus: bool) -> Any:
    if with_gpus:
        from dask_cuda import LocalCUDACluster

        return restart_waiting_class(LocalCUDACluster)
    from distributed import LocalCluster

    return restart_waiting_class(LocalCluster)


def _start(cls: Any, options: dict[str, Any]) -> "Cluster":
    try:
        return cls(**options)
    except RuntimeError as error:
        root: BaseException = error
        while root.__cause__ is not None:
            root = root.__cause__
        raise RuntimeError(
            f"local_cluster: the cluster did not start: {root}. Worker processes import the script that "
            'starts them, so that a script has to call local_cluster under if __name__ == "__main__":'
        ) from error


def _configuration() -> Any:
    """Dask's configuration here and now."""
    import dask

    return dask.config.config


def _not_interrupted() -> Any:
    from manyfit.cluster.worker.run_items import NotInterrupted

    return NotInterrupted()


@cache
def _client_class() -> Any:
    # Made on first use: importing distributed takes half a second, which importing manyfit does not.
    from distributed import Client, Status

    class LocalClient(Client):
        """A client that closes its cluster with itself."""

        def close(self, *args: Any, **kwargs: Any) -> Any:
            closing = super().close(*args, **kwargs)
            if isawaitable(closing):  # called in the event loop, which must not wait for itself
                return _close_both(closing, self.cluster)
            # A client that is let go of is closed again, wherever that is: also where Dask holds the lock
            # that closing takes, even for a cluster that is closed.
            if self.cluster is None or self.cluster.status == Status.closed:
                return None
            return self.cluster.close()

    return LocalClient


async def _close_both(closing: Any, cluster: Any) -> None:
    await closing
    if cluster is not None:
        await cluster.close()
