"""What is counted on a GPU, by stand-ins for the libraries that count there, and what is asked of it."""

from __future__ import annotations

import json
import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.gpu import _compared, _memory, _seen, _timed, _verdicts
from benchmarks.gpu._contenders import ACCEL, CUML_DEVICE, CUML_HOST, OURS, OURS_ON_HOST, SKLEARN


def module(monkeypatch, name, **contents):
    made = types.ModuleType(name)
    made.__path__ = []
    vars(made).update(contents)
    monkeypatch.setitem(sys.modules, name, made)
    return made


@pytest.fixture
def cupy(monkeypatch):
    """CuPy with a pool, whose hooks are told of what is taken and given back by keywords, as its own are."""
    hooks, allocators = [], []

    class MemoryHook:
        def __enter__(self):
            hooks.append(self)
            return self

        def __exit__(self, *_):
            hooks.remove(self)

    runtime = types.SimpleNamespace(memGetInfo=lambda: (1000, 2000))
    cuda = types.SimpleNamespace(MemoryHook=MemoryHook, runtime=runtime, set_allocator=allocators.append)
    freed = []
    pool = types.SimpleNamespace(free_all_blocks=lambda: freed.append(True))
    found = module(monkeypatch, "cupy", cuda=cuda, get_default_memory_pool=lambda: pool)
    found.hooks, found.allocators, found.freed = hooks, allocators, freed
    return found


def test_peak_of_cupys_pool(cupy, monkeypatch):
    monkeypatch.setattr(_memory, "find_spec", lambda name: None)
    memory = _memory.device_memory("cupy")
    assert memory.free() == 1000 and cupy.freed
    memory.mark()
    (hook,) = cupy.hooks
    for taken in (100, 300):
        hook.malloc_postprocess(device_id=0, size=1, mem_size=taken, mem_ptr=0, pmem_id=0)
    hook.free_postprocess(device_id=0, mem_size=300, mem_ptr=0, pmem_id=0)
    hook.malloc_postprocess(device_id=0, size=1, mem_size=200, mem_ptr=0, pmem_id=0)
    assert memory.peak() == 400 and not cupy.hooks


def test_peak_of_rmm(cupy, monkeypatch):
    """One pool for all: CuPy takes from it, too, whether cuML was imported or not."""
    set_up, counts = [], [types.SimpleNamespace(current_bytes=100, peak_bytes=0)]
    monkeypatch.setattr(_memory, "find_spec", lambda name: name)
    mr = module(
        monkeypatch, "rmm.mr",
        CudaAsyncMemoryResource=lambda: "pool", set_current_device_resource=set_up.append,
    )  # fmt: skip
    statistics = module(
        monkeypatch, "rmm.statistics",
        enable_statistics=lambda: set_up.append("counted"),
        get_statistics=lambda: counts[-1],
        push_statistics=lambda: counts.append(types.SimpleNamespace(current_bytes=0, peak_bytes=77)),
        pop_statistics=lambda: counts.pop(),
    )  # fmt: skip
    module(monkeypatch, "rmm", mr=mr, statistics=statistics)
    module(monkeypatch, "rmm.allocators")
    module(monkeypatch, "rmm.allocators.cupy", rmm_cupy_allocator="rmm")
    memory = _memory.device_memory("cupy")
    assert set_up == ["pool", "counted"] and cupy.allocators == ["rmm"]
    assert memory.free() == 900
    memory.mark()
    assert memory.peak() == 77 and memory.free() == 900


def test_rmm_that_cannot_be_set_up_is_said(cupy, monkeypatch):
    monkeypatch.setattr(_memory, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "rmm.mr", None)
    assert _memory.device_memory("cupy").pool.startswith(
        "CuPy's pool, for RMM cannot be set up: ModuleNotFound"
    )


def test_peak_of_torch(monkeypatch):
    cuda = types.SimpleNamespace(
        empty_cache=lambda: None, mem_get_info=lambda: (5, 9), memory_allocated=lambda: 10,
        reset_peak_memory_stats=lambda: None, max_memory_allocated=lambda: 25,
    )  # fmt: skip
    module(monkeypatch, "torch", cuda=cuda)
    memory = _memory.device_memory("torch")
    assert memory.free() == 5
    memory.mark()
    assert memory.peak() == 15


def test_the_peak_is_kept_also_of_what_fails():
    told = []
    memory = _memory.Memory("", lambda: 0, lambda: told.append("mark"), lambda: 12)

    def search(settings):
        raise MemoryError("too much")

    row = _timed.timed(search, [{}], [{}], 10.0, memory=memory)
    assert row["peak"] == 12 and told == ["mark"] and "too much" in row["failure"]


def test_a_first_run_is_not_timed_and_what_ended_the_second_is_kept(monkeypatch):
    answer = SimpleNamespace(splits=np.ones((2, 1)), keys=["a"])
    monkeypatch.setattr(_timed, "read_search", lambda _: answer)
    runs = iter([None, MemoryError("too much")])

    def search(settings):
        if (error := next(runs)) is not None:
            raise error

    row = _timed.timed(search, [{}], [{}], 10.0)
    assert row["seconds"] is None and row["runs"] == 1
    assert row["failure"].startswith("MemoryError: too much: only the first run, ")


def test_a_trace_is_read(tmp_path):
    """As torch's profiler writes it: copies with their bytes, calls of CUDA's runtime by name."""
    copy = {"ph": "X", "cat": "gpu_memcpy"}
    call = {"ph": "X", "cat": "cuda_runtime"}
    events = [
        {**copy, "name": "Memcpy HtoD (Pageable -> Device)", "args": {"bytes": 800}},
        {**copy, "name": "Memcpy DtoH (Device -> Pageable)", "args": {"bytes": 8}},
        {**copy, "name": "Memcpy DtoH (Device -> Pinned)", "args": {"bytes": 16}},
        {**copy, "name": "Memcpy DtoD (Device -> Device)", "args": {"bytes": 4000}},
        {**call, "name": "cudaStreamSynchronize"},
        {**call, "name": "cudaStreamSynchronize_v3020"},
        {**call, "name": "cudaMemcpyAsync"},
        {**call, "name": "cudaLaunchKernel"},
        {**call, "name": "cudaDeviceSynchronize"},  # the profiler's own, at the end
        {"ph": "i", "name": "Record Window End"},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert _seen.read_trace(path) == {"seen_to_device": 800, "seen_to_host": 24, "seen_waits": 2}


def test_without_who_sees_it_nothing_is_seen(monkeypatch):
    monkeypatch.setattr(_seen, "find_spec", lambda name: None)
    assert _seen.seen(lambda: pytest.fail("called")) is None


def row(contender, whole, *, problem="ridge", case="c", dtype="float64", scores=(0.5,), **more):
    return {
        "problem": problem, "case": case, "contender": contender, "dtype": dtype, "floor": 0.5, "settings": 1,
        "whole": whole, "seconds": whole, "settings_run": 1, "scores": {"a": list(scores)}, **more,
    }  # fmt: skip


def test_what_was_seen_joins_its_row():
    rows = [
        row(OURS, 1.0),
        row(SKLEARN, 4.0),
        {"problem": "ridge", "case": "c", "contender": OURS, "seen": {"seen_waits": 3, "seen_to_host": 8}},
    ]
    ours, theirs = _compared.compared(rows)
    assert (ours["seen_waits"], ours["seen_to_host"], ours["seen_to_device"]) == (3, 8, None)
    assert theirs["seen_waits"] is None
    assert len(_compared.largest_differences(rows)) == 1


def asked(rows, own=()):
    return {v.asked: (v.got, v.met) for v in _verdicts.verdicts(_compared.compared(rows), own)}


def test_bars_of_shared_searches():
    small = [row(OURS, 9.0, case="small", synchronisations=1), row(SKLEARN, 1.0, case="small")]
    large = [
        row(OURS, 2.0, synchronisations=1, scores=[0.5 + 1e-8]),
        row(OURS_ON_HOST, 1.0),
        row(SKLEARN, 8.0),
        row(ACCEL, 5.0),
        row(CUML_DEVICE, None, scores=(), failure="no"),
    ]
    found = asked(small + large)
    assert found.pop("ridge, c: not slower than cuml.accel") == ("2.5 times as fast", True)
    assert found.pop("ridge: waits of manyfit beyond one, at any size") == ("0 more", True)
    assert found.pop("ridge: scores within 1e-09 of scikit-learn's in float64") == ("1e-08 apart", False)
    assert found.pop("ridge: scores within 1e-05 of scikit-learn's in float32") == ("not measured", None)
    assert not found
    large[0] |= {"synchronisations": 5}
    assert asked(small + large)["ridge: waits of manyfit beyond one, at any size"][1] is False
    iterated = [
        row(OURS, 1.0, problem="logistic", synchronisations=11, waits_of_passes=8),
        row(SKLEARN, 0.5, problem="logistic"),
    ]
    found = asked(iterated)
    assert found["logistic: waits of manyfit beyond one for each pass and 3, at any size"] == ("0 more", True)
    assert found["logistic, c: not slower than scikit-learn n_jobs=-1"] == ("0.5 times as fast", False)
    assert len(found) == 2


def test_bars_of_fits_one_by_one():
    rows = [
        row(OURS, 1.04, problem="forest"),
        row(CUML_DEVICE, 1.0, problem="forest"),
        row(CUML_HOST, 0.1, problem="forest"),
    ]
    (found,) = asked(rows, own=["forest"]).items()
    assert found == (
        f"forest, c: not slower than {CUML_DEVICE} by more than 5%",
        ("1.01 times as fast", True),
    )
    rows[0]["whole"] = 1.1
    assert next(iter(asked(rows, own=["forest"]).values()))[1] is False
    rows[0] |= {"whole": None, "scores": {}}
    assert next(iter(asked(rows, own=["forest"]).values())) == ("not measured", None)
