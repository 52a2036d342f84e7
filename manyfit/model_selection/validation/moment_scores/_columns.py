"""Cross-validated scores of one estimator on many sets of columns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from manyfit.families import LinearAnswers
from manyfit.folds import Array, Unsupported
from manyfit.model_selection.validation.moment_scores._folds import MomentFolds, draw_fixed_splits

__all__ = ["ColumnScores", "draw_fixed_splits"]

# Numbers of the systems of equations that are solved together.
SYSTEM_NUMBERS = 2**20


class ColumnScores(MomentFolds):
    """One estimator whose scores on sets of columns of X follow from the moments of all columns."""

    def scores(self, subsets: Array) -> Array:
        """Test scores of m sets of k columns, (m, k), on each split, (m, n_splits).

        NaN where scikit-learn has to fit: columns that are nearly dependent, or a score that warns.
        """
        size = max(1, SYSTEM_NUMBERS // max(subsets.shape[1] ** 2, 1))
        blocks = [subsets[start : start + size] for start in range(0, len(subsets), size)]
        found = [[self._of_split(i, block) for block in blocks] for i in range(self.n_splits)]
        return np.stack([np.concatenate(one) for one in found], axis=1)

    def _of_split(self, i: int, subsets: Array) -> Array:
        try:
            scores = self.score(i, self.fit_subsets(i, subsets))
        except Unsupported:
            scores = np.full(len(subsets), np.nan)
        missing = np.flatnonzero(np.isnan(scores))  # the bounds of a batch are wider than those of one fit
        scores[missing] = self._one_by_one(i, subsets[missing])
        return scores

    def _one_by_one(self, i: int, subsets: Array) -> Array:
        scores, fitted = np.full(len(subsets), np.nan), dict[int, LinearAnswers]()
        for j, columns in enumerate(subsets):
            try:
                fitted[j] = self.fit(i, self.behind_steps(self.views[i].selected(columns)))
            except Exception:  # scikit-learn fits it, and raises or warns in its own words
                continue
        parts: Sequence[LinearAnswers] = list(fitted.values())
        if parts:
            with suppress(Unsupported):
                scores[list(fitted)] = self.score(i, LinearAnswers.joined(parts))
        return scores
