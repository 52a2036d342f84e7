"""The counter: nesting, exceptions, threads, pickling."""

from __future__ import annotations

import contextvars
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import array_api_strict
import pytest

from manyfit.arrays import Crossings, Transfers, label_transfers, to_device, to_host, transfers

DEVICE1 = array_api_strict.Device("device1")


@pytest.fixture
def x():
    """An array of 80 bytes on a device."""
    return array_api_strict.ones(10, device=DEVICE1)


def homecomings(n: int) -> Transfers:
    return Transfers(bytes_to_host=80 * n, synchronisations=n)


def test_blocks_nest(x):
    with transfers() as outer:
        to_host(x)
        with transfers() as inner:
            to_host(x)
        to_host(x)
    assert inner == homecomings(1)
    assert outer == homecomings(3)


def test_nothing_is_counted_outside(x):
    with transfers() as crossed:
        pass
    to_host(x)
    assert crossed == Transfers()


def test_a_block_that_raises_stops_counting(x):
    block = transfers()
    crossed = block.__enter__()
    to_host(x)
    assert not block.__exit__(KeyError, KeyError(), None), "the exception was swallowed"
    to_host(x)
    assert crossed == homecomings(1)


def test_threads_in_a_copy_of_the_context_lose_no_count(x):
    def work():
        for _ in range(200):
            to_host(x)

    with transfers() as crossed, ThreadPoolExecutor(8) as pool:
        contexts = [contextvars.copy_context() for _ in range(8)]
        for done in [pool.submit(context.run, work) for context in contexts]:
            done.result()
    assert crossed == homecomings(1600)


def test_a_plain_thread_is_not_seen_as_documented(x):
    with transfers() as crossed:
        thread = threading.Thread(target=to_host, args=(x,))
        thread.start()
        thread.join()
    assert crossed == Transfers()


def test_blocks_of_two_threads_do_not_mix(x):
    both_open = threading.Barrier(2, timeout=60)

    def work(n):
        with transfers() as crossed:
            both_open.wait()
            for _ in range(n):
                to_host(x)
            both_open.wait()
        return crossed

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, [1, 3])) == [homecomings(1), homecomings(3)]


def test_a_count_is_pickled_and_printed():
    crossed = Transfers(bytes_to_device=1_234_567, bytes_to_host=8, synchronisations=1)
    assert pickle.loads(pickle.dumps(crossed)) == crossed
    assert str(crossed) == "1,234,567 bytes to device, 8 bytes to host, 1 synchronisations"


@pytest.mark.invariant("Every transfer between host and device is counted under its label")
def test_labels_of_calls_go_before_those_of_blocks(x):
    with transfers() as crossed, label_transfers("outer"):
        to_host(x)
        to_host(x, label="own")
        with label_transfers("inner"):
            to_device(to_host(x), DEVICE1, array_api_strict)
        to_host(x)
    assert crossed.by_label == {
        "outer": Crossings(to_host=2, bytes_to_host=160),
        "own": Crossings(to_host=1, bytes_to_host=80),
        "inner": Crossings(1, 80, 1, 80),
    }
    total = Crossings()
    for one in crossed.by_label.values():
        total = total.plus(one)
    assert total == (1, crossed.bytes_to_device, crossed.synchronisations, crossed.bytes_to_host)


def test_without_a_label_it_is_other(x):
    with transfers() as crossed:
        to_host(x)
    assert crossed.by_label == {"other": Crossings(to_host=1, bytes_to_host=80)}
