"""A cluster with one worker for each GPU, which is imitated."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from importlib.util import find_spec

import pytest
from distributed import LocalCluster
from distributed.system import MEMORY_LIMIT

from manyfit.cluster import _local_cluster as _start
from manyfit.cluster import describe, local_cluster
from manyfit.cluster.inspection import gpu_workers as _gpu_workers
from tests.cluster._recorded_cluster import recorded

pytestmark = pytest.mark.thorough


@pytest.fixture
def gpus(monkeypatch):
    """A machine that has dask-cuda, CuPy, RMM, and as many GPUs as one says: only their names."""
    installed = {"dask_cuda", "cupy", "rmm", "pynvml"}
    monkeypatch.setattr(_gpu_workers, "find_spec", lambda name: name in installed or None)
    nvml = types.ModuleType("pynvml")
    nvml.NVMLError = type("NVMLError", (Exception,), {})
    nvml.nvmlInit = lambda: None
    nvml.nvmlDeviceGetCount = lambda: 0
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    class LocalCUDACluster(LocalCluster):
        """dask-cuda's arguments, as far as they are ours; the workers are those of the CPU."""

        def __init__(self, *, rmm_pool_size, device_memory_limit, rmm_allocator_external_lib_list, **kwargs):
            super().__init__(**kwargs)

    dask_cuda = types.ModuleType("dask_cuda")
    dask_cuda.LocalCUDACluster = LocalCUDACluster
    monkeypatch.setitem(sys.modules, "dask_cuda", dask_cuda)

    def are(n: int) -> types.ModuleType:
        nvml.nvmlDeviceGetCount = lambda: n
        return nvml

    are.installed = installed
    return are


def test_one_worker_for_each_gpu(gpus, monkeypatch):
    gpus(3)
    monkeypatch.setattr(_start, "cpu_count", lambda: 12)
    options = recorded(monkeypatch)
    local_cluster()
    assert options.pop("cls").__name__ == "LocalCUDACluster"
    assert options == {
        "n_workers": 3,
        "threads_per_worker": 1,
        "memory_limit": MEMORY_LIMIT // 4,
        "security": None,
        "dashboard_address": "127.0.0.1:0",
        "rmm_pool_size": 0.5,
        "device_memory_limit": "default",
        "rmm_allocator_external_lib_list": ["cupy"],
        "resources": {"GPU": 1},
    }


def test_options_of_gpus(gpus, monkeypatch):
    gpus(1)
    options = recorded(monkeypatch)
    local_cluster(slots_per_gpu=2, rmm_pool_size="4GB", device_memory_limit=0.6, resources={"disk": 1})
    assert options["threads_per_worker"] == 2 and options["resources"] == {"disk": 1, "GPU": 2}
    assert options["rmm_pool_size"] == "4GB" and options["device_memory_limit"] == 0.6
    local_cluster(rmm_async=True, rmm_allocator_external_lib_list=["cupy", "torch"])
    assert options["rmm_pool_size"] is None and options["rmm_async"] is True
    assert options["rmm_allocator_external_lib_list"] == ["cupy", "torch"]
    with pytest.raises(ValueError, match="threads_per_worker=1 cannot run slots_per_gpu=2"):
        local_cluster(slots_per_gpu=2, threads_per_worker=1)


def test_without_rmm_there_is_no_pool(gpus, monkeypatch):
    gpus(1)
    gpus.installed.remove("rmm")
    options = recorded(monkeypatch)
    local_cluster()
    assert options["rmm_pool_size"] is None and "rmm_allocator_external_lib_list" not in options


def test_gpus_may_be_left_alone(gpus, monkeypatch):
    gpus(2)
    options = recorded(monkeypatch)
    local_cluster(gpu=False, rmm_pool_size="4GB")
    assert issubclass(options["cls"], LocalCluster) and not {"rmm_pool_size", "resources"} & set(options)


def test_a_gpu_that_is_asked_for_and_not_there(gpus, monkeypatch):
    with pytest.raises(RuntimeError, match="CUDA_VISIBLE_DEVICES is not set"):
        local_cluster(gpu=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    with pytest.raises(RuntimeError, match="CUDA_VISIBLE_DEVICES is '-1'"):
        local_cluster(gpu=True)
    gpus.installed.clear()
    with pytest.raises(ImportError, match="gpu-cu12 or gpu-cu13"):
        local_cluster(gpu=True)
    assert not _gpu_workers.wants_gpus(None)


@pytest.mark.parametrize(
    ("visible", "there", "count"),
    [(None, 4, 4), ("", 4, 0), ("-1", 4, 0), ("2", 4, 1), ("1, 3", 4, 2), ("0,-1,1", 4, 1), ("0,1,2", 2, 2)]
    + [("MIG-a,MIG-b", 1, 2)],
)
def test_gpus_are_counted_as_cuda_sees_them(gpus, monkeypatch, visible, there, count):
    gpus(there)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert _gpu_workers.gpu_count() == count


def test_without_a_driver_there_is_no_gpu(gpus, monkeypatch):
    nvml = gpus(1)

    def fails():
        raise nvml.NVMLError("no driver")

    monkeypatch.setattr(nvml, "nvmlInit", fails)
    assert _gpu_workers.gpu_count() == 0
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert _gpu_workers.gpu_count() == 0


def test_gpu_workers_declare_their_slots(gpus, tmp_path):
    """Real processes, which tell of a GPU as NVML would tell it."""
    gpus(1)
    preload = tmp_path / "tells.py"
    preload.write_text(
        "def dask_setup(worker):\n"
        "    told = {'gpu_name': 'Imitated 1', 'gpu_memory_total': 85 * 2**30}\n"
        "    worker.handlers['get_monitor_info'] = lambda recent: told\n"
    )
    with local_cluster(slots_per_gpu=2, preload=[str(preload)]) as client:
        (worker,) = describe(client).workers
        assert client.submit(lambda: 7, resources={"GPU": 1}).result() == 7
    found = (worker.device, worker.device_memory, worker.threads, worker.slots)
    assert found == ("Imitated 1", 85 * 2**30, 2, 2)


def test_dask_cuda_is_not_imported_where_it_is_not_asked_for():
    assert find_spec("manyfit.cluster") and "dask_cuda" not in sys.modules


@pytest.mark.gpu
@pytest.mark.skipif(find_spec("dask_cuda") is None, reason="dask-cuda is not installed")
def test_options_are_those_of_dask_cuda():
    """Of the one that is installed; importing it needs no GPU."""
    taken = inspect.signature(importlib.import_module("dask_cuda").LocalCUDACluster).parameters
    assert taken["kwargs"].kind is inspect.Parameter.VAR_KEYWORD  # resources among them, to the workers
    assert set(_gpu_workers.gpu_options(1, "auto", "default", {})) - {"resources"} <= set(taken)
    assert {"n_workers", "threads_per_worker", "memory_limit", "rmm_async", "enable_cudf_spill"} <= set(taken)
    assert taken["device_memory_limit"].default == "default"
