"""Tasks get objects of their own, equal to those of the caller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import array_api_strict
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config

from manyfit.joblib_backend._batch_pickle import REREAD_BYTES
from tests.joblib_backend._calls import LARGE

pytestmark = pytest.mark.slow


def test_objects_that_change_between_tasks_are_sent_as_they_are(two):
    """A list is looked at for each batch, unlike arrays of 1 MB."""
    grows: list[str] = ["a" * 40_000]

    def tasks() -> Iterator[Any]:
        for i in range(12):
            grows.append(str(i))
            yield delayed(len)(list(grows))

    assert Parallel(backend="manyfit", batch_size=1)(tasks()) == list(range(2, 14))


def test_tasks_get_objects_of_their_own(two):
    """What is sent once is still not shared between tasks."""
    much = [0.5] * 20_000

    def grow(x: list[float]) -> int:
        x.append(1.0)
        return len(x)

    assert Parallel(backend="manyfit", batch_size=1)(delayed(grow)(much) for _ in range(10)) == [20_001] * 10


# ------------------------------------------------------------------------------------------ writing


def _write(x: Any) -> float:
    x[0] = 100.0
    return float(x.sum())


def _unlock(x: Any) -> None:
    x.setflags(write=True)


def test_large_arrays_of_tasks_cannot_be_made_writable(two):
    """Nor can they under loky: what one task wrote would be there for all later ones."""
    large = np.asfortranarray(np.ones((2, REREAD_BYTES // 8)))
    with parallel_config(backend="manyfit"), pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        Parallel()(delayed(_unlock)(x) for x in (large, large))


def test_arrays_of_tasks_are_writable_as_under_loky(two):
    """Up to `max_nbytes` they are the task's own; larger ones are mapped there, read-only."""
    small, large = np.ones(LARGE), np.ones(2 * REREAD_BYTES // 8)
    with parallel_config(backend="manyfit"):
        assert Parallel()(delayed(_write)(small) for _ in range(6)) == [LARGE + 99.0] * 6
        with pytest.raises(ValueError, match="read-only"):
            Parallel()(delayed(_write)(large) for _ in range(6))
        assert Parallel(max_nbytes=None)(delayed(_write)(large) for _ in range(6)) == [len(large) + 99.0] * 6
        assert Parallel(mmap_mode="c")(delayed(_write)(large) for _ in range(6)) == [len(large) + 99.0] * 6
        with pytest.raises(ValueError, match="read-only"):
            Parallel(max_nbytes="100K")(delayed(_write)(small) for _ in range(6))
    assert (small == 1.0).all()
    assert (large == 1.0).all()


# ------------------------------------------------------------------------------------------ as they were


def _arrays(tmp_path: Any) -> dict[str, Any]:
    numbers = np.random.default_rng(0).normal(size=(300, 200))
    on_disk = np.memmap(tmp_path / "numbers", "f8", "w+", shape=(300, 200))
    on_disk[:] = numbers
    read_only = numbers.copy()
    read_only.flags.writeable = False
    return {
        "0-d": np.array(3.0),
        "empty": np.empty((0, 5)),
        "Fortran": np.asfortranarray(numbers),
        "every other": numbers[::2, ::-3],
        "transposed": numbers.T,
        "broadcast": np.broadcast_to(np.arange(300.0)[:, None], (300, 200)),
        "objects": np.array([{"a": 1}, None, "text"] * 5_000, dtype=object),
        "texts": np.array(["some text"] * 10_000),
        "records": np.zeros(10_000, dtype=[("a", "f8"), ("b", "U3")]),
        "big endian": numbers.astype(">f8"),
        "half": numbers.astype("f2"),
        "bool": numbers > 0,
        "complex": numbers + 1j,
        "dates": np.arange(20_000).astype("M8[s]"),
        "mapped": np.memmap(tmp_path / "numbers", "f8", "r", shape=(300, 200)),
        "a part of what is mapped": np.memmap(tmp_path / "numbers", "f8", "r", shape=(300, 200))[10:, :150],
        "masked": np.ma.masked_less(numbers, 0),
        "read-only": read_only,
        "large every other": np.random.default_rng(0).normal(size=(2_000, 200))[:, ::2],
    }


def _told(x: Any) -> Any:
    content = np.array(x, order="K", subok=True)
    return content, type(x) is np.memmap, np.ma.isMA(x), x.dtype, x.shape, x.flags.fnc


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arrays_arrive_as_they_were(two, tmp_path):
    for kind, array in _arrays(tmp_path).items():
        masked = np.ma.isMA(array)
        expected = (False, masked, array.dtype, array.shape, array.flags.fnc)
        for content, *found in Parallel(backend="manyfit")(delayed(_told)(array) for _ in range(4)):
            assert tuple(found) == expected, kind
            np.testing.assert_array_equal(content, array if masked else np.asarray(array), err_msg=kind)


def test_one_array_twice_in_a_task_is_one_object(two, data):
    same = delayed(lambda a, b: a is b["b"])
    assert Parallel(backend="manyfit")(same(data, {"b": data}) for _ in range(4)) == [True] * 4


def test_arrays_of_a_device_arrive_on_it(two):
    device = array_api_strict.Device("device1")
    array = array_api_strict.asarray(np.arange(float(LARGE)), device=device)

    def told(x: Any) -> tuple[str, float]:
        import array_api_strict

        return str(x.device), float(array_api_strict.sum(x))

    found = Parallel(backend="manyfit")(delayed(told)(array) for _ in range(4))
    assert found == [(str(device), LARGE * (LARGE - 1) / 2)] * 4


def test_huge_results_come_back_writable(two):
    for result in Parallel(backend="manyfit", batch_size=1)(
        delayed(np.full)(3_000_000, float(i)) for i in range(6)
    ):
        result += 1.0
        assert result[0] == result[-1]
