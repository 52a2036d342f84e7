"""The border: values, dtypes and shapes survive it, and only real crossings are counted."""

from __future__ import annotations

import array_api_compat as compat
import array_api_strict
import dask.array
import numpy as np
import pytest

from manyfit import arrays
from manyfit.arrays import Transfers, to_device, to_host, transfers
from manyfit.arrays.transfer import _host_device as _transfer

DEVICE1 = array_api_strict.Device("device1")
DEVICE2 = array_api_strict.Device("device2")


def crosses(device) -> bool:
    return "cpu" not in str(device).lower()


def bit_equal(left, right) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


@pytest.mark.invariant("Every transfer between host and device is counted under its label")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (4, 3)])
def test_there_and_back_again(xp, device, dtype, shape):
    host = (np.random.default_rng(0).normal(size=shape) * 10).astype(dtype)
    with transfers() as crossed:
        there = to_device(host, device, xp)
        back = to_host(there)
    assert arrays.array_namespace(there) is xp
    assert arrays.device(there) == device
    assert type(back) is np.ndarray
    assert bit_equal(back, host)
    nbytes, waits = (host.nbytes, 1) if crosses(device) else (0, 0)
    assert crossed == Transfers(bytes_to_device=nbytes, bytes_to_host=nbytes, synchronisations=waits)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::-1],  # negative strides
        lambda a: a[::2, 1:],
        lambda a: a.T,
        lambda a: np.broadcast_to(a[0], (7, 3)),  # strides of zero, read-only
        np.asfortranarray,
    ],
    ids=["reversed", "slices", "transposed", "broadcast", "fortran"],
)
def test_views_arrive_as_they_look(xp, device, view):
    host = view(np.arange(18.0).reshape(6, 3))
    assert bit_equal(to_host(to_device(host, device, xp)), host)


def test_a_read_only_memory_map_arrives(xp, device, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4.0))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(to_host(to_device(mapped, device, xp)), np.arange(4.0))


def test_a_crossing_copies(xp, device):
    host = np.zeros(3)
    there = to_device(host, device, xp)
    if crosses(device):
        host[0] = 1.0
        back = to_host(there)
        back[1] = 1.0
        assert to_host(there).tolist() == [0.0, 0.0, 0.0]


def test_what_is_there_already_is_left_alone(xp, device):
    x = to_device(np.ones(3), device, xp)
    with transfers() as crossed:
        assert to_device(x) is x
        assert to_device(x, device) is x
        assert to_device(x, xp=xp) is x
        assert to_device(x, device, xp) is x
    assert crossed == Transfers()


def test_the_host_costs_nothing():
    host = np.ones((100, 3))
    on_cpu = array_api_strict.asarray(host)
    with transfers() as crossed:
        assert to_host(host) is host
        assert to_host(host[1:]).base is host
        assert to_host(np.float64(2.5)) == 2.5
        at_home = to_host(on_cpu)
        again = to_device(host, xp=array_api_strict)
        assert to_device(on_cpu, "cpu", np).shape == host.shape
    assert crossed == Transfers()
    at_home[0, 0] = 7.0
    assert to_host(on_cpu)[0, 0] == 7.0, "to_host copied what lies on the host"
    host[0, 1] = 8.0
    assert to_host(again)[0, 1] == 8.0, "to_device copied from host to host"


@pytest.mark.invariant("Every transfer between host and device is counted under its label")
def test_to_host_of_the_device_fires_the_counter_where_numpy_itself_refuses():
    x = array_api_strict.ones((10, 2), device=DEVICE1)
    with pytest.raises(RuntimeError, match="Can't convert array on the 'array_api_strict.Device"):
        np.asarray(x)
    with transfers() as crossed:
        assert to_host(x).tolist() == [[1.0, 1.0]] * 10
        assert crossed == Transfers(bytes_to_host=160, synchronisations=1)
        to_host(x[0, 0])
    assert crossed == Transfers(bytes_to_host=168, synchronisations=2)


def test_inside_one_library():
    x = array_api_strict.ones(10)
    with transfers() as crossed:
        up = to_device(x, DEVICE1)
        assert crossed == Transfers(bytes_to_device=80)
        across = to_device(up, DEVICE2)
        assert crossed == Transfers(bytes_to_device=80), "a copy between devices does not touch the host"
        down = to_device(across, array_api_strict.Device("CPU_DEVICE"))
    assert [arrays.device(a) for a in (up, across)] == [DEVICE1, DEVICE2]
    assert to_host(down).tolist() == [1.0] * 10
    assert crossed == Transfers(bytes_to_device=80, bytes_to_host=80, synchronisations=1)


def test_to_another_library_goes_through_the_host():
    x = array_api_strict.ones(10, device=DEVICE1)
    with transfers() as crossed:
        home = to_device(x, xp=np)
    assert type(home) is np.ndarray
    assert crossed == Transfers(bytes_to_host=80, synchronisations=1)


def test_without_a_device_another_library_uses_its_default():
    assert arrays.device(to_device(np.ones(2), xp=array_api_strict)) == array_api_strict.Device("CPU_DEVICE")


def test_xp_may_be_the_library_or_its_compatible_namespace():
    x = array_api_strict.ones(2)
    assert type(to_device(x, xp=np)) is np.ndarray
    assert type(to_device(x, xp=compat.array_namespace(np.ones(1)))) is np.ndarray


def test_numpy_has_no_device():
    with pytest.raises(
        ValueError, match=r"cannot put a NumPy array on device 'cuda:0': .*host only.* Pass xp="
    ):
        to_device(np.ones(2), "cuda:0")


def test_xp_must_be_a_namespace():
    with pytest.raises(
        TypeError, match="to_device needs xp to be the namespace .*, got 'torch'. Pass a module"
    ):
        to_device(np.ones(2), xp="torch")


def test_lazy_arrays_are_not_computed():
    lazy = dask.array.ones((4, 2))
    with pytest.raises(
        TypeError, match=r"to_host needs .*in memory, got a lazy Dask array of shape \(4, 2\).*compute"
    ):
        to_host(lazy)
    with pytest.raises(TypeError, match="lazy Dask array"):
        to_device(lazy, xp=np)
    assert to_device(lazy) is lazy


def test_the_librarys_own_error_says_what_was_moved():
    with pytest.raises(
        ValueError, match=r"Unsupported device 'moon'\s.*array of numpy, shape \(2,\), dtype float64"
    ):
        to_device(np.ones(2), "moon", array_api_strict)
    with pytest.raises(
        TypeError, match=r"to array_api_strict on device array_api_strict.Device\('device1'\)"
    ):
        to_device(np.array([None]), DEVICE1, array_api_strict)


def test_a_tensor_that_requires_gradients_comes_home():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.ones(3, requires_grad=True)
    assert to_host(x).tolist() == [1.0, 1.0, 1.0]
    assert x.requires_grad


@pytest.mark.parametrize("name", ["<CUDA Device 3>", "cuda:3", "cuda"])
def test_a_place_has_no_number(name):
    """CuPy's name of a device, and torch's, as another process with another GPU knows it."""

    class Device:
        __str__ = __repr__ = lambda self: name

    assert _transfer._kind(Device()) == "cuda"
