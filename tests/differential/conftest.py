"""Every test here shares whatever can be shared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.differential._profile import THOROUGH
from tests.differential._subject import sharing_whatever_it_costs


@pytest.fixture(autouse=True)
def _always_share() -> Iterator[None]:
    with sharing_whatever_it_costs():
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every twelfth awkward case, each with a second route of its own; all in the thorough profile."""
    awkward = [item for item in items if item.path.name == "test_awkward.py" and hasattr(item, "callspec")]
    if THOROUGH or len(awkward) < 2:
        return
    left_out = set(awkward) - set(awkward[::12])
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
