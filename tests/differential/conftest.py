"""Every test here shares whatever can be shared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ._subject import sharing_whatever_it_costs


@pytest.fixture(autouse=True)
def _always_share() -> Iterator[None]:
    with sharing_whatever_it_costs():
        yield
