"""Fixtures of the tests of searches on clusters."""

from __future__ import annotations

import pytest

from manyfit.cluster import chunk_workers
from tests.cluster._clusters import within


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch):
    """Passes over the small X of these tests are several tasks."""
    monkeypatch.setattr(chunk_workers, "LEAST_BYTES", 1)


@pytest.fixture
def three():
    with within(3) as client:
        yield client
