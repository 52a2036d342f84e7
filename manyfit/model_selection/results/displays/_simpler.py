"""The one-standard-error choice: the simplest setting that is as good as the best."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Simpler = Literal["auto", "smaller", "larger"] | None

# Parameters of scikit-learn, XGBoost and LightGBM whose larger, or smaller, values give simpler models.
_LARGER = {
    "alpha", "ccp_alpha", "l2_regularization", "min_child_samples", "min_child_weight", "min_data_in_leaf",
    "min_impurity_decrease", "min_samples_leaf", "min_samples_split", "n_neighbors", "reg_alpha",
    "reg_lambda", "var_smoothing",
}  # fmt: skip
_SMALLER = {
    "C", "degree", "k", "max_depth", "max_iter", "max_leaf_nodes", "n_components", "n_estimators",
    "n_features_to_select", "n_knots", "num_leaves",
}  # fmt: skip


def direction(name: str, simpler: Simpler) -> Literal["smaller", "larger"] | None:
    """Which values of a parameter give the simpler model; None if unknown."""
    if simpler != "auto":
        return simpler
    last = name.rpartition("__")[2]
    return "larger" if last in _LARGER else "smaller" if last in _SMALLER else None


def simplest(
    values: NDArray[np.float64], mean: NDArray[np.float64], best: int, threshold: float, way: str | None
) -> int | None:
    """Position of the simplest of the settings whose mean reaches the threshold; the best of those alike."""
    if way is None:
        return None
    good = np.flatnonzero(mean >= threshold)
    good = good[values[good] >= values[best]] if way == "larger" else good[values[good] <= values[best]]
    ends = good[values[good] == (values[good].max() if way == "larger" else values[good].min())]
    return best if best in ends else int(ends[np.argmax(mean[ends])])
