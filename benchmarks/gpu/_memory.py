"""Memory of the device: one pool for all contenders of a process, and how much of it was in use at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Memory:
    """Bytes of the device.

    ``free`` tells those that may still be had. ``mark`` begins to watch, and ``peak`` ends it: bytes in use
    at most since then, beyond those in use then; None where the library does not tell. ``pool`` is where
    memory comes from, in words.
    """

    pool: str
    free: Callable[[], int]
    mark: Callable[[], None]
    peak: Callable[[], int | None]


def device_memory(library: str) -> Memory:
    """Return the memory that a library's arrays, and cuML's, are taken from.

    cuML has CuPy take its memory from RMM from its import on, one call of the driver for each array. So where
    there is RMM it is set up first of all, as RAPIDS' users do: a pool of the driver's, for everybody here.
    """
    if library == "torch":
        return _torch()
    if find_spec("rmm") is None:
        return _cupy("CuPy's pool")
    try:
        return _rmm()
    except Exception as error:  # what is wrong with it, cuML's rows will say as well
        return _cupy(f"CuPy's pool, for RMM cannot be set up: {type(error).__name__}: {error}")


def pool_of_rmm() -> Any:
    """Set RMM up, count what is taken from it, and return the module that tells the counts."""
    mr, statistics = import_module("rmm.mr"), import_module("rmm.statistics")
    mr.set_current_device_resource(mr.CudaAsyncMemoryResource())
    statistics.enable_statistics()
    allocator = import_module("rmm.allocators.cupy").rmm_cupy_allocator
    import_module("cupy").cuda.set_allocator(allocator)
    return statistics


def _rmm() -> Memory:
    statistics = pool_of_rmm()
    at_first = int(import_module("cupy").cuda.runtime.memGetInfo()[0])

    def free() -> int:
        # What the pool keeps without using it is not free to the driver.
        return at_first - int(statistics.get_statistics().current_bytes)

    peak = lambda: int(statistics.pop_statistics().peak_bytes)  # noqa: E731
    return Memory("a pool of the driver's, by RMM", free, statistics.push_statistics, peak)


def _cupy(pool: str) -> Memory:
    cupy = import_module("cupy")

    class Watch(cupy.cuda.MemoryHook):  # type: ignore[misc, name-defined]
        """Counts what goes out of CuPy's pool and comes back."""

        name = "manyfit"
        now = most = 0

        def malloc_postprocess(self, **told: Any) -> None:
            self.now += told["mem_size"]
            self.most = max(self.most, self.now)

        def free_postprocess(self, **told: Any) -> None:
            self.now -= told["mem_size"]

    watches: list[Any] = []

    def free() -> int:
        cupy.get_default_memory_pool().free_all_blocks()
        return int(cupy.cuda.runtime.memGetInfo()[0])

    def mark() -> None:
        watches.append(Watch().__enter__())

    def peak() -> int:
        watch = watches.pop()
        watch.__exit__(None, None, None)
        return int(watch.most)

    return Memory(pool, free, mark, peak)


def _torch() -> Memory:
    cuda = import_module("torch").cuda
    before: list[int] = []

    def free() -> int:
        cuda.empty_cache()
        return int(cuda.mem_get_info()[0])

    def mark() -> None:
        before.append(int(cuda.memory_allocated()))
        cuda.reset_peak_memory_stats()

    def peak() -> int:
        return int(cuda.max_memory_allocated()) - before.pop()

    return Memory("torch's pool", free, mark, peak)


def no_memory(free: Callable[[], int]) -> Memory:
    """Memory of which nothing is known but how much there is."""
    return Memory("none that is known", free, lambda: None, lambda: None)
