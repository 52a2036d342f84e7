"""Description of a cluster: device, memory and slots of each worker, and versions that differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyfit._config.sizes import format_count
from manyfit.cluster.inspection.gpu_workers import GPU
from manyfit.cluster.inspection.versions import ask_versions, ask_workers, plain_versions, require_distributed

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["ClusterDescription", "describe"]

# Packages of which workers and the scheduler should have the client's version.
PACKAGES = ("python", "dask", "distributed", "manyfit", "scikit-learn", "numpy", "scipy")
# Seconds to wait for an answer: a worker whose task holds the interpreter answers late.
TIMEOUT_S = 10.0


@dataclass(frozen=True)
class WorkerDescription:
    """One worker of a cluster.

    Attributes
    ----------
    name : str
        Name on the dashboard; the address if the worker was given no name.
    address : str
        Address with the protocol.
    host : str
        The host's part of the address.
    device : str or None
        Name of its GPU, or "GPU" if the driver reports none. None for a worker without the resource ``GPU``,
        even on a host that has a GPU.
    device_memory : int or None
        Bytes of the GPU, if the driver reports them.
    memory_limit : int
        Bytes of host memory; 0 is no limit.
    threads : int
        Tasks that it runs at a time.
    slots : int
        Heavy tasks that it runs at a time: its resource ``GPU``, or else its threads.
    versions : Mapping of str to (str or None)
        Installed packages; None is not installed. Empty if the worker did not answer in time.
    """

    name: str
    address: str
    host: str
    device: str | None
    device_memory: int | None
    memory_limit: int
    threads: int
    slots: int
    versions: Mapping[str, str | None]


@dataclass(frozen=True)
class ClusterDescription:
    """The workers of a cluster; prints as a table.

    Attributes
    ----------
    address : str
        Address of the scheduler.
    workers : tuple of WorkerDescription
        By name.
    client_versions : Mapping of str to (str or None)
        Versions of Python and of packages that results depend on; None is not installed.
    scheduler_versions : Mapping of str to (str or None)
        The same versions of the scheduler.
    """

    address: str
    workers: tuple[WorkerDescription, ...]
    client_versions: Mapping[str, str | None]
    scheduler_versions: Mapping[str, str | None]

    @property
    def slots(self) -> int:
        """Heavy tasks that the cluster runs at a time: the sum over the workers."""
        return sum(worker.slots for worker in self.workers)

    @property
    def differences(self) -> tuple[str, ...]:
        """Versions of workers and the scheduler that are not the client's, in words, one text for each."""
        others = [("the scheduler", self.scheduler_versions)]
        others += [(f"worker {worker.name}", worker.versions) for worker in self.workers]
        texts = []
        for package, ours in self.client_versions.items():
            found: dict[str | None, list[str]] = {}
            for name, versions in others:
                if versions and versions[package] != ours:
                    found.setdefault(versions[package], []).append(name)
            for version, names in found.items():
                theirs = f"{package} is {version or 'not installed'} on {_few(names)}"
                texts.append(f"{theirs}, and {ours or 'not installed'} here")
        if silent := [name for name, versions in others if not versions]:
            texts.append(f"the versions on {_few(silent)} are not known: no answer in {TIMEOUT_S:g} s")
        return tuple(texts)

    def __str__(self) -> str:
        workers, slots = format_count(len(self.workers), "worker"), format_count(self.slots, "slot")
        heading = f"Cluster at {self.address}: {workers}, {slots}"
        rows = [_HEAD, *(_row(worker) for worker in self.workers)] if self.workers else []
        return "\n".join([heading, *_aligned(rows), *self.differences])


def describe(client: "Client") -> ClusterDescription:
    """Describe the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        Connected. Workers may be started in any way: `local_cluster`, Dask's command line, a batch system.

    Returns
    -------
    ClusterDescription
        The workers at the time of the call. ``print`` shows them as a table.

    Raises
    ------
    ImportError
        If distributed is not installed.
    TypeError
        If `client` is no client, or an asynchronous one.
    ValueError
        If it is closed.
    ConnectionError
        If the scheduler does not answer in ten seconds.

    See Also
    --------
    local_cluster : Start a cluster on this machine.

    Notes
    -----
    No code is sent to the workers, and no worker loads CUDA. Dask's workers reported the names and memory of
    GPUs when they joined, if NVML's Python package is installed on them, as with dask-cuda. Workers that are
    too busy to answer have no versions.

    Examples
    --------
    >>> from manyfit.cluster import describe, local_cluster
    >>> with local_cluster(2) as client:  # doctest: +SKIP
    ...     print(describe(client))
    """
    require_distributed("describe")
    from distributed.versions import get_versions

    _check(client)
    scheduler: Any = client.scheduler
    identity = _ask(client, scheduler.identity, n_workers=-1)
    if identity is None:
        raise ConnectionError(
            f"describe: the scheduler of {client!r} does not answer; is the cluster still there?"
        )
    names = [name for name in PACKAGES if name != "python"]  # Python's own version comes with any
    of_scheduler = _ask(client, scheduler.versions, packages=names)
    of_workers = client.sync(ask_versions, client, list(identity["workers"]), names, TIMEOUT_S)
    gpus = _ask_gpus(client, identity["workers"])
    workers = [
        _worker(address, info, gpus.get(address) or {}, plain_versions(of_workers.get(address), PACKAGES))
        for address, info in identity["workers"].items()
    ]
    return ClusterDescription(
        address=identity["address"],
        workers=tuple(sorted(workers, key=_by_name)),
        client_versions=plain_versions(get_versions(packages=names), PACKAGES),
        scheduler_versions=plain_versions(of_scheduler, PACKAGES),
    )


def _check(client: Any) -> None:
    from distributed import Client

    if not isinstance(client, Client):
        raise TypeError(
            f"describe: client must be a distributed.Client, not {type(client).__name__}; "
            "Client(...) makes one from a cluster or the address of a scheduler"
        )
    if client.asynchronous:
        raise TypeError("describe: the client is asynchronous; connect one without asynchronous=True")
    if client.status in ("closed", "closing", "newly-created"):
        raise ValueError(f"describe: the client is {client.status}; connect another one")


def _ask(client: Any, question: Any, **arguments: Any) -> Any:
    """Return the answer of the cluster, or None."""
    try:
        return client.sync(question, **arguments, callback_timeout=TIMEOUT_S)
    except (TimeoutError, OSError):
        return None


def _ask_gpus(client: Any, workers: Mapping[str, Any]) -> dict[str, Any]:
    """Ask workers that declare a GPU for its name and memory: not all tell them when they start."""
    addresses = [address for address, info in workers.items() if info["resources"].get(GPU)]
    message = {"op": "get_monitor_info", "recent": True}
    return dict(client.sync(ask_workers, client, addresses, message, TIMEOUT_S)) if addresses else {}


def _worker(
    address: str, info: Mapping[str, Any], gpu: Mapping[str, Any], versions: Mapping[str, str | None]
) -> WorkerDescription:
    slots = int(info["resources"].get(GPU, 0))
    return WorkerDescription(
        name=str(info["name"]),
        address=address,
        host=info["host"],
        device=(gpu.get("gpu_name") or "GPU") if slots else None,
        device_memory=gpu.get("gpu_memory_total") if slots else None,
        memory_limit=info["memory_limit"] or 0,
        threads=info["nthreads"],
        slots=slots or info["nthreads"],
        versions=versions,
    )


def _by_name(worker: WorkerDescription) -> tuple[bool, int, str]:
    """Sort key: numbers in their order, then other names."""
    number = worker.name.isdecimal()
    return (not number, int(worker.name) if number else 0, worker.name)


def _few(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


_HEAD = ("worker", "address", "device", "device memory", "memory limit", "threads", "slots")


def _row(worker: WorkerDescription) -> tuple[str, ...]:
    from dask.utils import format_bytes

    return (
        "-" if worker.name == worker.address else worker.name,
        worker.address,
        worker.device or "CPU",
        "-" if worker.device_memory is None else format_bytes(worker.device_memory),
        format_bytes(worker.memory_limit) if worker.memory_limit else "none",
        str(worker.threads),
        str(worker.slots),
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
