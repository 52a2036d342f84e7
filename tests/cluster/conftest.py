"""Fixtures of the tests of searches on clusters."""

from __future__ import annotations

import pytest

from tests.cluster._clusters import within


@pytest.fixture
def three():
    with within(3) as client:
        yield client
