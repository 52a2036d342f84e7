"""Tests draw the same data in whatever order they run."""

from __future__ import annotations

import numpy as np
import pytest

rng = np.random.default_rng(0)
AT_IMPORT = rng.random(3)


def drawn():
    return rng.random(3)


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_a_generator_of_its_own(turn):
    np.testing.assert_array_equal(drawn(), np.random.default_rng(1).random(3))
    assert not np.isin(drawn(), AT_IMPORT).any()
