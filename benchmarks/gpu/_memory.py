"""Memory of the device: one pool for all contenders of a process, and its peak use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Memory:
    """Bytes of the device.

    ``free`` returns the bytes that are still available. ``mark`` starts to watch, and ``peak`` returns the
    largest number of bytes in use since then, beyond those in use at the start; None if the library does
    not say. ``pool`` describes the source of the memory.
    """

    pool: str
    free: Callable[[], int]
    mark: Callable[[], None]
    peak: Callable[[], int | None]


def device_memory(library: str) -> Memory:
    """Return the memory pool of a library's arrays, and of cuML's.

    Importing cuML makes CuPy take its memory from RMM, with one driver call per array. If there is RMM, it
    therefore gets a pool of the driver's first, as RAPIDS users set it up, for all contenders.
    """
    if library == "torch":
        return _torch()
    if find_spec("rmm") is None:
        return _cupy("CuPy's pool")
    try:
        return _rmm()
    except Exception as error:  # cuML's rows report the same failure
        return _cupy(f"CuPy's pool, for RMM cannot be set up: {type(error).__name__}: {error}")


def pool_of_rmm() -> Any:
    """Set up RMM with counters, and return the module that has the counts."""
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
        # The driver does not count unused memory of the pool as free.
        return at_first - int(statistics.get_statistics().current_bytes)

    peak = lambda: int(statistics.pop_statistics().peak_bytes)  # noqa: E731
    return Memory("a pool of the driver's, by RMM", free, statistics.push_statistics, peak)


def _cupy(pool: str) -> Memory:
    cupy = import_module("cupy")

    class Watch(cupy.cuda.MemoryHook):  # type: ignore[misc, name-defined]
        """Counts the bytes that CuPy's pool gives out and takes back."""

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
    """Memory of which only the size is known."""
    return Memory("none that is known", free, lambda: None, lambda: None)
