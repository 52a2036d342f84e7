"""Data of tasks are let go of with their owner."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from distributed import Client
from joblib import Parallel, delayed

from manyfit.cluster.pool import _retention as _kept
from manyfit.cluster.pool._retention import RetainedParts
from manyfit.cluster.pool.placement import get_placement
from manyfit.joblib_backend._batch_pickle import REREAD_BYTES, BatchPacker
from tests.cluster._clusters import within
from tests.cluster._processes import wait_for
from tests.joblib_backend._calls import LARGE, total

pytestmark = pytest.mark.slow


# ------------------------------------------------------------------------------------------ let go of


@pytest.mark.invariant("The joblib backend sends data once, never stale, and frees them with their owner")
def test_nothing_stays_when_the_caller_has_let_go(two):
    placement = get_placement(two)
    gc.collect()
    wait_for(lambda: not placement._sent or gc.collect() or not placement._sent)
    data = np.ones(LARGE)
    Parallel(backend="manyfit")(delayed(total)(data) for _ in range(4))
    Parallel(backend="manyfit")(delayed(len)(["text"] * 50_000) for _ in range(4))
    wait_for(lambda: len(placement._sent) == 1)
    del data
    gc.collect()
    wait_for(lambda: not placement._sent and not placement.retained._entries and not placement._in_use)
    wait_for(lambda: not two.has_what() or not any(two.has_what().values()))


def most_parts(client: Client, arrays: Any) -> int:
    """How many parts at most are on the cluster while a call goes over arrays of one number each."""
    placement, most = get_placement(client), 0
    results = Parallel(backend="manyfit", batch_size=1, return_as="generator")(
        delayed(total)(array) for array in arrays
    )
    for i, result in enumerate(results):
        assert result == i * LARGE
        most = max(most, len(placement._sent))
    return most


@pytest.mark.invariant("The joblib backend sends data once, never stale, and frees them with their owner")
def test_arrays_that_a_generator_makes_are_let_go_on_the_way(monkeypatch):
    """Neither the client nor the cluster keeps all of them."""
    monkeypatch.setattr("manyfit.joblib_backend._shared_arguments.RECENT_BYTES", 10 * 8 * LARGE)
    with within(1) as client:
        most = most_parts(client, (np.full(LARGE, float(i)) for i in range(60)))
        assert most < 40  # how soon is a matter of time


def test_a_list_of_arrays_that_is_larger_than_what_is_kept(monkeypatch):
    """Though the caller has all of them."""
    monkeypatch.setattr("manyfit.joblib_backend._shared_arguments.RECENT_BYTES", 8 * LARGE)
    monkeypatch.setattr("manyfit.joblib_backend._shared_arguments.KEPT_PART", 1e-3)
    arrays = [np.full(LARGE, float(i)) for i in range(60)]
    with within(1, memory_limit=80_000 * LARGE) as client:  # ten arrays are kept
        assert 8 <= most_parts(client, arrays) < 30  # and those that are under way
        assert get_placement(client).retained._nbytes <= 10 * 8 * LARGE


def test_arrays_that_go_with_the_interpreter_are_no_errors(monkeypatch):
    """Modules are emptied then before all arrays are gone; an error would be a warning here."""
    kept, data = RetainedParts(lambda: None), np.ones(2)
    assert kept.keep("a", 16, data)
    for name in ("sys", "contextlib"):
        monkeypatch.setattr(_kept, name, None)
    del data
    gc.collect()


def test_the_packer_holds_nothing():
    packer = BatchPacker()
    data = np.ones(2 * REREAD_BYTES // 8)
    view = data[10:]
    keys = {packer.pack([(total, (view,), {})], None).owners[0][1] for _ in range(2)}
    assert len(keys) == 1
    gone = weakref.ref(data)
    del data, view
    gc.collect()
    assert gone() is None
