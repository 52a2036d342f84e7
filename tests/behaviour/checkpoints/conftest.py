"""Fixtures of the tests of checkpoints."""

import pytest

from tests.behaviour.steps._counted import FITS, STOP_AFTER


@pytest.fixture(autouse=True)
def _nothing_counted():
    yield
    FITS.clear()
    STOP_AFTER.clear()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search.checkpoint"
