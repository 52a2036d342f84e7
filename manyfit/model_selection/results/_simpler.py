"""Which of the settings that are nearly as good as the best one is the simplest."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, takewhile
from typing import Any, Literal

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


def simplest(complexity: NDArray[np.float64], mean: NDArray[np.float64], best: int, threshold: float) -> int:
    """Position of the simplest setting whose mean reaches the threshold; the best of those alike.

    `complexity`, (n_settings, n_parameters): larger is less simple, and earlier columns count more. No
    setting is chosen whose first column is above the best one's.
    """
    good = np.flatnonzero((mean >= threshold) & (complexity[:, 0] <= complexity[best, 0]))
    for column in complexity.T:
        good = good[column[good] == column[good].min()]
    return best if best in good else int(good[np.argmax(mean[good])])


def read_folds(results: Mapping[str, Any], metric: str, role: str = "test") -> NDArray[np.float64]:
    """Scores of all splits by a metric in `cv_results_`, (n_settings, n_splits)."""
    names = (f"split{i}_{role}_{metric}" for i in count())
    columns = [np.asarray(results[name], dtype=float) for name in takewhile(results.__contains__, names)]
    return np.column_stack(columns)


def standard_errors(folds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard error of the mean of each row; NaN for one column."""
    n_splits = folds.shape[1]
    if n_splits < 2:
        return np.full(len(folds), np.nan)
    return np.asarray(folds.std(axis=1, ddof=1) / np.sqrt(n_splits), dtype=float)
