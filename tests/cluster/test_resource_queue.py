"""How items become tasks."""

import numpy as np
import pytest

from manyfit.cluster.pool.resource_queue import AHEAD_S, LEAST_TASK_S, TASK_S, ResourceQueue


def _one(name: str) -> bool:
    return True


def _handed_out(n: int, each: float, slots: int) -> list[tuple[int, ...]]:
    lane = ResourceQueue((), range(n), _one)
    tasks = []
    while lane.chunks:
        tasks.append(lane.chunks.take(slots))
        lane.chunks.record(tasks[-1], each * len(tasks[-1]))
    return tasks


@pytest.mark.parametrize("each", [1e-5, 1e-3, 0.02, 0.16, 0.3, 5.0])
@pytest.mark.parametrize("slots", [1, 2, 7])
def test_items_are_put_together_in_order_and_none_is_lost(each: float, slots: int) -> None:
    tasks = _handed_out(500, each, slots)
    assert [item for task in tasks for item in task] == list(range(500))
    seconds = np.array([len(task) * each for task in tasks])
    assert np.all((seconds <= TASK_S * (1 + 1e-9)) | (np.array([len(task) for task in tasks]) == 1))
    # What one slot still does when the others have nothing left.
    assert seconds[-1] <= max(each, LEAST_TASK_S)
    # The first is one item, as nothing is known of how long it takes.
    assert len(tasks[0]) == 1


def test_items_that_are_put_back_come_first() -> None:
    lane = ResourceQueue((), range(5), _one)
    taken = lane.chunks.take(1) + lane.chunks.take(1)
    lane.chunks.put_back(taken)
    assert [lane.chunks.take(1) for _ in range(5)] == [(i,) for i in range(5)]


def test_fewer_tasks_than_items_of_the_benchmark() -> None:
    """120 fits of 0.16 s on two slots."""
    assert len(_handed_out(120, 0.16, 2)) < 75


@pytest.mark.parametrize(
    ("each", "resources", "most"),
    [(0.001, (), 2), (0.05, (), 2), (0.16, (), AHEAD_S / TASK_S), (2.0, (), AHEAD_S / 2)]
    + [(2.0, (("GPU", 1.0),), 2)],
)
def test_long_items_are_handed_out_ahead(each: float, resources: tuple, most: float) -> None:
    """But none that take resources."""
    lane = ResourceQueue(resources, range(10_000), _one)
    lane.slots = 1
    lane.chunks.record(lane.chunks.take(1), each)
    while lane.has_room:
        lane.chunks.take(1)
        lane.running += 1
    assert lane.running == most
