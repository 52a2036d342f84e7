"""Conditions under which liblinear's Newton method stops, and the penalty of its intercept."""

from typing import Any

import numpy as np

from manyfit.families.protocol import Array, Settings
from manyfit.families.smooth.solver._coarse_to_fine import Model
from manyfit.families.smooth.solver._objective import RowLoss
from manyfit.families.smooth.solver._trial import STEEP, Stopping
from manyfit.folds import PassData, Unsupported

# Newton's method may make as many iterations as it is allowed. Its `tol` is relative to the gradient at the
# start, and leaves scores open where L-BFGS would need more steps than these.
ITERATIONS = 400
# It stops without a word where the loss falls by less than that.
RESOLUTION = 1e-12


def require_usual_intercept(estimator: Any) -> None:
    """Raise `Unsupported` unless the intercept is penalised as a weight, or there is none."""
    if estimator.fit_intercept and estimator.intercept_scaling != 1:
        raise Unsupported("intercept_scaling changes the penalty of the intercept")


def liblinear_model(
    estimator: Any, settings: Settings, rowwise: RowLoss, most: int, rarest: float = 1.0, loss: float = 1.0
) -> Model:
    """The model of all C, with a penalised intercept and liblinear's rule of when to stop.

    `most`: Newton's iterations; `rarest`: see `rarest_share`; `loss`: mean loss at the start.
    """
    C = np.array([float(setting["C"]) for setting in settings])
    return Model(
        rowwise,
        lambda total: 1.0 / (C * total),
        "penalised" if estimator.fit_intercept else "none",
        float(estimator.tol) * rarest,
        norm="euclidean",
        stopping=Stopping(most, None, RESOLUTION, loss, STEEP),
    )


def rarest_share(own: Array, data: PassData) -> float:
    """The smallest share that either side has of a training part, rows without weight left out.

    `own`, (n,), is 1 for rows of the class and 0 for the others. liblinear multiplies `tol` by it.
    """
    counted = np.ones(len(own)) if data.weight is None else (data.weight > 0).astype(np.float64)
    shares = []
    for group in data.groups:
        held = np.stack([np.bincount(own[rows], counted[rows], minlength=2) for rows in group.rows])
        both = group.train @ held
        if not both.all():
            raise Unsupported("a class has no weight in a training part")
        shares.append((both.min(axis=1) / both.sum(axis=1)).min())
    return float(min(shares))
