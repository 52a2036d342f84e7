"""Tests whether two settings, scored on the same splits, differ."""

from __future__ import annotations

import warnings
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Test = Literal["corrected t", "t", "wilcoxon"] | None
TESTS = (*get_args(get_args(Test)[0]), None)
_ROUNDING = 1e-12  # differences of scores that are this small, relative to the scores, are none


def p_values(differences: NDArray[np.float64], test: Test, ratio: float, size: float) -> NDArray[np.float64]:
    """Two-sided p-value of each row of differences; NaN where one is NaN or there is one split.

    `ratio`: test rows per training row, for the corrected test; `size`: the size of the scores.
    """
    n_splits = differences.shape[1]
    if test is None or n_splits < 2:
        return np.full(len(differences), np.nan)
    differences = np.where(np.abs(differences) <= _ROUNDING * size, 0.0, differences)
    if test == "wilcoxon":
        return np.array([_wilcoxon(row) for row in differences])
    from scipy.stats import t

    mean = differences.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = mean / standard_errors(differences, test, ratio)
    p = 2 * t.sf(np.abs(statistic), n_splits - 1)
    return np.asarray(np.where((differences == 0).all(axis=1), 1.0, p))


def standard_errors(differences: NDArray[np.float64], test: Test, ratio: float) -> NDArray[np.float64]:
    """Standard error of the mean of each row.

    The corrected test allows for training sets that overlap (Nadeau and Bengio, Machine Learning 52, 2003).
    """
    n_splits = differences.shape[1]
    factor = 1 / n_splits + (ratio if test == "corrected t" else 0.0)
    return np.asarray(differences.std(axis=1, ddof=1) * np.sqrt(factor))


def test_train_ratio(search: Any, n_splits: int) -> float:
    """Test rows per training row, as the search's splitter says; without a word as for KFold."""
    cv = getattr(search, "cv", None)
    part = getattr(cv, "test_size", None)
    if isinstance(part, float) and 0 < part < 1:
        return part / (1 - part)
    n_folds = n_splits / getattr(cv, "n_repeats", 1)
    return 1 / (n_folds - 1) if n_folds > 1 else 1.0


def _wilcoxon(differences: NDArray[np.float64]) -> float:
    """Wilcoxon's signed-rank test, which leaves differences of zero out."""
    from scipy.stats import wilcoxon

    if np.isnan(differences).any():
        return np.nan
    differences = differences[differences != 0]
    if not differences.size:
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few splits are what a search has
        return float(wilcoxon(differences).pvalue)
