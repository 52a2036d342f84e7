"""The cache of transfers: each array crosses once, in either direction."""

from __future__ import annotations

import pickle

import array_api_strict
import numpy as np
import pytest

from manyfit.arrays import TransferCache, Transfers, device, to_device, to_host_together, transfers

DEVICE1 = array_api_strict.Device("device1")


def on_device(array):
    return to_device(array, DEVICE1, array_api_strict)


@pytest.mark.parametrize("weak", [False, True])
def test_each_array_is_copied_to_the_host_once(weak):
    x, cache = on_device(np.arange(3.0)), TransferCache(weak=weak)
    with transfers() as crossed:
        copy = cache(x, "first")
        assert cache(x) is copy and copy.tolist() == [0.0, 1.0, 2.0]
    assert crossed == Transfers(bytes_to_host=24, synchronisations=1) and set(crossed.by_label) == {"first"}
    assert copy.flags.writeable is not weak


def test_the_host_keeps_its_own_values():
    cache = TransferCache()
    for value in (np.ones(2), None, "text", [1.0]):
        assert cache(value) is value


def test_each_array_is_copied_to_the_device_of_the_target_once():
    y = np.ones(3)
    cache = TransferCache(on_device(np.zeros(1)))
    with transfers() as crossed:
        assert cache(y) is cache(y) and device(cache(y)) == DEVICE1
    assert crossed == Transfers(bytes_to_device=24)
    assert cache(None) is None
    assert TransferCache(np.zeros(1))(y) is y


def test_another_array_with_the_same_identity_is_copied():
    cache, found = TransferCache(weak=True), []
    for i in range(5):
        x = on_device(np.full(2, float(i)))
        found.append(cache(x)[0])
        del x
    assert found == list(map(float, range(5))) and not cache._copies


def test_a_pickle_holds_no_copies():
    x, y = on_device(np.ones(3)), np.ones(3)
    cache, sent = TransferCache(), TransferCache(np.zeros(1), weak=True)
    cache(x)
    again, other = (pickle.loads(pickle.dumps(one)) for one in (cache, sent))
    assert not again._copies and again._target is None and not again._weak
    assert other(y) is y and other._weak


def test_several_arrays_cross_together():
    arrays = [on_device(np.ones((2, 3))), on_device(np.zeros(4))]
    with transfers() as crossed:
        first, second = to_host_together(*arrays, label="both")
    assert crossed.synchronisations == 1 and first.shape == (2, 3) and second.tolist() == [0.0] * 4
    assert to_host_together() == []
