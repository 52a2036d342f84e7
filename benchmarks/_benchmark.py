"""The parts of a benchmark, and the register of all benchmarks."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks._bars import Bar
from benchmarks._floor import Work
from benchmarks._study import Study
from benchmarks._task import Data, Task

Kind = Literal["ours", "scikit-learn", "specialised", "other"]

_Any = TypeVar("_Any", "Benchmark", "Study")

_REGISTER: dict[str, Benchmark | Study] = {}


@dataclass(frozen=True)
class Answer:
    """The scores of one search, in a form that can be compared with another search.

    ``means`` has shape (settings,) and ``splits`` (splits, settings). Both are None for a class that gives
    only the ``best`` score. ``best`` is None for a class that optimises something else.
    """

    best: float | None
    keys: tuple[str, ...] = ()
    means: NDArray[np.float64] | None = None
    splits: NDArray[np.float64] | None = None
    seconds_per_fit: NDArray[np.float64] | None = None
    params: tuple[Mapping[str, Any], ...] = ()
    report: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Contender:
    """One way to do a task: ``fit`` is timed, ``read`` takes the scores out afterwards.

    ``in_process`` says that all fits happen in this process, so that they can be counted. ``prepare`` runs
    before, with the same arguments, and is not timed. Scores are compared with those of the contender
    ``peer`` if it took part: scikit-learn's neighbours break ties by the number of threads of a process.
    """

    name: str
    kind: Kind
    fit: Callable[[Task, NDArray[Any], NDArray[Any]], Any]
    read: Callable[[Any], Answer]
    in_process: bool = True
    note: str = ""
    prepare: Callable[[Task, NDArray[Any], NDArray[Any]], Any] | None = None
    peer: str | None = None


@dataclass(frozen=True)
class Benchmark:
    """A task on some data, its contenders, requirements on manyfit, and the least work that it could take.

    ``data`` and ``task`` are called with ``quick``: True means a size that takes moments.
    ``separate_steps`` says that the floor is one fit of every distinct step, because nothing cheaper is
    known. ``around`` is a context that surrounds the runs, such as a cluster; ``cores`` are available, all
    if None. A contender is given up if a run takes longer than ``most_seconds``. Scores are compared with
    those of the contender ``reference``, by default the first of scikit-learn's, or of the contender's peer.
    """

    name: str
    summary: str
    task: Callable[[bool], Task]
    data: Callable[[bool], Data]
    contenders: tuple[Contender, ...]
    bars: tuple[Bar, ...]
    work: Callable[[Task, NDArray[Any], NDArray[Any]], Work]
    repeat: int
    separate_steps: bool = False
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    cores: int | None = None
    reference: str | None = None
    most_seconds: float = 600.0


def register(benchmark: _Any) -> _Any:
    """Register a benchmark under its name."""
    if benchmark.name in _REGISTER:
        raise ValueError(f"a benchmark named {benchmark.name!r} is registered already")
    _REGISTER[benchmark.name] = benchmark
    return benchmark


def all_benchmarks() -> dict[str, Benchmark | Study]:
    """Import every group and return the benchmarks by name, in order of registration."""
    import benchmarks

    for module in pkgutil.iter_modules(benchmarks.__path__):
        if not module.name.startswith("_") and not module.ispkg:
            importlib.import_module(f"benchmarks.{module.name}")
    return dict(_REGISTER)
