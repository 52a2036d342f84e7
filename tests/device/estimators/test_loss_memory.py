"""What losses take of a device's memory is what blocks of rows are made for."""

from __future__ import annotations

import numpy as np
import pytest

from manyfit.families.smooth.solver._losses import (
    HalfBinomial,
    HalfMultinomial,
    HalfTweedie,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from manyfit.families.smooth.solver._objective import RowLoss
from manyfit.folds import wrap_rows
from manyfit.folds.passes import _device as _device_passes
from tests.behaviour.metrics._crossings import memory_there, there


@pytest.mark.parametrize(
    "loss",
    [
        HalfBinomial(),
        HalfMultinomial(3),
        HalfTweedie(1.0),
        HalfTweedie(1.5),
        HalfTweedie(2.0),
        SquaredHinge(),
        SquaredEpsilonInsensitive(0.1),
    ],
    ids=str,
)
def test_losses_take_as_many_arrays_as_blocks_are_made_for(loss):
    rng, K, m, b = np.random.default_rng(0), loss.n_outputs, 40, 1000
    targets, weight = rng.integers(1, 3, size=(K, b)), rng.uniform(1.0, 2.0, b)
    rowwise = RowLoss(loss, 1.0 * targets, weight, np.array([[1.0, 2.0], [3.0, 4.0]]), targets[0] - 1)
    rowwise = rowwise.beside(wrap_rows(there(targets)))
    splits, Z = np.repeat([0, 1], m // 2), rng.normal(size=(K, m, b))
    for derive, arrays in (
        (rowwise.gradient, _device_passes.OF_GRADIENT + (1 / K if K > 1 else 0.125)),
        (rowwise.curvature, _device_passes.OF_CURVATURE + (0.125 if K > 1 else 0.0)),
    ):
        with memory_there() as used:
            own = there(Z)
            derive(own, slice(0, b), splits)
        # Beside them are the largest of the outputs or a mask, and a few rows of weights.
        assert used[1] <= (arrays + 0.3) * Z.nbytes, (used[1] / Z.nbytes, derive)
