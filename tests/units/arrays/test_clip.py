"""Values between bounds: NumPy's numbers in every library, without masks."""

import numpy as np
import pytest

from manyfit.arrays import clip, to_device, to_host
from tests.behaviour.metrics._crossings import crossings, there

VALUES = np.array([-np.inf, -1.0, 0.5, 2.0, np.inf])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    "bounds", [(0, 1), (None, 1), (0, None), (None, None), (np.float32(0), np.float64(1)), (0.25, 1.5)]
)
def test_numpys_numbers(bounds, dtype, xp, device):
    if dtype == "int32" and any(isinstance(bound, float | np.floating) for bound in bounds):
        return
    values = np.nan_to_num(VALUES, posinf=7, neginf=-7).astype(dtype)
    found = to_host(clip(xp, to_device(values, device, xp), *bounds))
    assert found.dtype == values.dtype
    wanted = values if bounds == (None, None) else np.clip(values, *bounds)  # older NumPy wants a bound
    np.testing.assert_array_equal(found, wanted)


def test_bounds_for_each_value_and_nan(xp, device):
    values, low = (to_device(np.array(v), device, xp) for v in ([np.nan, -1.0, 3.0], [0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(to_host(clip(xp, values, low)), [np.nan, 1.0, 3.0])
    np.testing.assert_array_equal(to_host(clip(xp, values, None, low)), [np.nan, -1.0, 2.0])


def test_no_wait():
    import array_api_strict

    values = there(VALUES)
    with crossings() as counter:
        clip(array_api_strict, values, 0.0, 1.0)
    assert not counter
