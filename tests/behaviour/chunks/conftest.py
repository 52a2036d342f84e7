"""Fixtures of the tests of X in chunks."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import pytest


@pytest.fixture(autouse=True)
def _in_this_thread() -> Iterator[None]:
    """Have Dask compute its collections in the thread of the test."""
    with dask.config.set(scheduler="synchronous"):
        yield
