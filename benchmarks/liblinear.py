"""Iterations of liblinear with an l1 penalty: what those on one split say about the others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from benchmarks._benchmark import register
from benchmarks._scales import data_sets, scales
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import at_most
from manyfit.families.smooth._l1 import MARGIN

FOLDS = 3
STRENGTHS = (1e-2, 1.0, 1e2, 1e4)
MARGINS = (1.5, 2.5, MARGIN, 6.0)

_COLUMNS = (
    Column("margin", "margin"),
    Column("shared", "fits on other splits that would be shared"),
    Column("ended", "of them at max_iter in scikit-learn"),
)


def _iterations(X: Any, y: Any) -> np.ndarray:
    """Return scikit-learn's iterations for each strength on each split."""
    fits = []
    for strength in STRENGTHS:
        model = LogisticRegression(solver="liblinear", l1_ratio=1.0, random_state=0, C=strength)
        for train, _ in StratifiedKFold(FOLDS).split(X, y):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                fits.append(int(model.fit(X[train], y[train]).n_iter_[0]))
    return np.reshape(fits, (len(STRENGTHS), FOLDS))


def _measure(quick: bool, tell: Tell) -> Findings:
    parts = []
    for name, X, labels in data_sets(quick):
        for scale, Z in scales(X):
            tell(f"{name}, {scale}")
            parts.append(_iterations(Z, (labels == labels[0]).astype(int)))
    found, most = np.concatenate(parts), LogisticRegression().max_iter
    rows = []
    for margin in MARGINS:
        # Any of the splits may be the first.
        trusted = margin * found < most
        ended = (found >= most).sum(axis=1, keepdims=True)
        rows.append(
            {
                "margin": f"{margin:g}",
                "shared": int(trusted.sum()) * (FOLDS - 1),
                "ended": int((ended * trusted).sum()),
            }
        )
    own = next(row["ended"] for row in rows if row["margin"] == f"{MARGIN:g}")
    verdict = at_most(f"fits at max_iter that a margin of {MARGIN:g} shares: none", own, 0, "fits")
    notes = (f"{len(found)} settings on {FOLDS} splits, each split as the first.",)
    return Findings(rows, _COLUMNS, {"settings": len(found)}, notes, [verdict])


register(Study("l1-iterations", "iterations of liblinear with an l1 penalty on splits", _measure))
