"""What a call of Parallel was asked for, and whether that can be meant."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from dask.utils import parse_bytes

from manyfit.joblib_backend._workers import Names, Needs

Place = str | tuple[str, str]

# Parameters of the backend that `Parallel` may be given as well.
OF_A_CALL = ("client", "resources", "workers", "device", "nested", "apart_bytes", "wait_for_workers_timeout")


@dataclass(frozen=True)
class Options:
    """What a call of Parallel was asked for.

    Attributes
    ----------
    n_jobs : int
        As joblib has it: -1 is all slots, -2 all but one.
    needs : tuple of (str, float)
        Resources that each task takes of its worker.
    workers : tuple of (str or int) or None
        Addresses or names of the only workers to run on.
    priority : int
        Tasks with a higher one run first.
    apart_bytes : int
        Bytes from which on arrays and arguments travel apart.
    copied : int or None
        Bytes from which on tasks find arrays read-only; None: never.
    threads : int or None
        Threads of BLAS and OpenMP of each task.
    patience : float
        Seconds to wait where there is no worker.
    device : str, tuple of str or None
        Where data of estimators that take them there go.
    """

    n_jobs: int
    needs: Needs
    workers: Names
    priority: int
    apart_bytes: int
    copied: int | None
    threads: int | None
    patience: float
    device: Place | None


def checked(name: str, given: Any) -> Any:
    """A parameter of the backend, as it is kept.

    Raises
    ------
    ValueError, TypeError
        If it is none of those that the backend knows.
    """
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
        return _at_least_none(name, parse_bytes(given))
    return _at_least_none(name, given) if name == "wait_for_workers_timeout" else given


def _resources(given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise TypeError(f"resources must be a mapping as {{'GPU': 1}}, not {given!r}.")
    # Dask would look for a worker that declares what nothing is taken of.
    return {one: n for one, n in given.items() if _at_least_none(f"resources[{one!r}]", n)}


def _names(given: Any) -> tuple[str | int, ...]:
    names = (given,) if isinstance(given, str | int) else tuple(given)
    if not names or not all(isinstance(one, str | int) for one in names):
        raise ValueError(f"workers must be names or addresses of workers, or None for all, not {given!r}.")
    return names


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and all(isinstance(one, str) for one in given)


def _at_least_none(name: str, given: Any) -> Any:
    if not isinstance(given, Real) or not float(given) >= 0:
        raise ValueError(f"{name} must be a number that is not negative, not {given!r}.")
    return given
