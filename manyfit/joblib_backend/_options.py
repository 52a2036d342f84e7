"""Options of a call of Parallel, and their validation."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from manyfit._config.sizes import parse_size
from manyfit.cluster.pool.options import PoolOptions
from manyfit.cluster.pool.resource_queue import TASK_S, Resources

DeviceOption = str | tuple[str, str]
"""A device as users name it: "cuda", or a library and a kind of device."""

# Parameters of the backend that a single `Parallel` may override.
CALL_OPTIONS = (
    "client",
    "resources",
    "workers",
    "device",
    "nested",
    "apart_bytes",
    "wait_for_workers_timeout",
)


@dataclass(frozen=True)
class Options(PoolOptions):
    """Options of one call of Parallel, and the rules by which its pool runs the batches."""

    subject: str = "call of Parallel"
    n_jobs: int = -1  # as joblib counts: -1 is all slots, -2 all but one
    long_s: float = TASK_S
    most_tries: int = 8
    isolates: bool = False
    reserves: bool = False
    strict_versions: bool = False
    resources: Resources = ()  # that each task takes of its worker
    priority: int = 0  # tasks with a higher one run first
    apart_bytes: int = 0  # size from which on arrays and other arguments are sent apart from the tasks
    copied: int | None = None  # size in bytes from which on tasks get arrays read-only; None: never
    threads: int | None = None  # threads of BLAS and OpenMP of each task
    device: DeviceOption | None = None  # device for the data of estimators that support it


def check_option(name: str, given: Any) -> Any:
    """Validate a parameter of the backend, and return it as the backend stores it."""
    if name == "resources" and given is not None:
        return _resources(given)
    if name == "workers" and given is not None:
        return _names(given)
    if name == "device" and not (given is None or given == "cuda" or _is_pair(given)):
        raise ValueError(
            "device must be 'cuda', None, or a library and a kind of device as ('torch', 'cuda'), not "
            f"{given!r}."
        )
    if name == "nested" and given not in ("inline", "cluster"):
        raise ValueError(f"nested must be 'inline' or 'cluster', not {given!r}.")
    if name == "apart_bytes":
        return _nonnegative(name, parse_size(given) if isinstance(given, str) else given)
    return _nonnegative(name, given) if name == "wait_for_workers_timeout" else given


def _resources(given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise TypeError(f"resources must be a mapping as {{'GPU': 1}}, not {given!r}.")
    # Dask would look for a worker that declares a resource even if a task takes nothing of it.
    return {one: n for one, n in given.items() if _nonnegative(f"resources[{one!r}]", n)}


def _names(given: Any) -> tuple[str | int, ...]:
    names = (given,) if isinstance(given, str | int) else tuple(given)
    if not names or not all(isinstance(one, str | int) for one in names):
        raise ValueError(f"workers must be names or addresses of workers, or None for all, not {given!r}.")
    return names


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and all(isinstance(one, str) for one in given)


def _nonnegative(name: str, given: Any) -> Any:
    if not isinstance(given, Real) or not float(given) >= 0:
        raise ValueError(f"{name} must be a number that is not negative, not {given!r}.")
    return given
