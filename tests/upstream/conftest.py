"""Fixtures that scikit-learn's conftest gives its tests."""

import pytest


@pytest.fixture
def global_random_seed() -> int:
    """The seed that scikit-learn's suite runs with by default."""
    return 42
