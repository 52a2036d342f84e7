"""Cross-validated scores of one estimator for many targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.preprocessing import StandardScaler

from manyfit.families import SolvesSubsets, WrappedFamily
from manyfit.folds import Array, Splits, TargetMoments, Unsupported, sum_targets
from manyfit.metrics.scoring import Residuals, lost_predictions, residuals_from_moments
from manyfit.model_selection.validation.moment_scores._folds import MomentFolds

# Steps that read no target.
BLIND_STEPS = (StandardScaler, VarianceThreshold, PCA)
# A target whose variance is less than this part of its squared mean may be a constant.
MIN_VARIATION = 1e-20


class TargetScores(MomentFolds):
    """One regressor whose scores for many targets follow from moments of X, and products with them."""

    def __init__(self, estimator: Any, X: Any, y: Any, splits: Splits, scorer: Any, n_fits: int) -> None:
        super().__init__(estimator, X, y, splits, scorer, n_fits)
        family, single = self.group.family, self.data.single_target
        if isinstance(family, WrappedFamily) or not isinstance(family, SolvesSubsets) or not single:
            raise Unsupported("several targets are not fitted as each of them alone")
        if self.data.classes is not None or not self.scoring.reads_moments or self.scoring.multimetric:
            raise Unsupported("the score is not had from moments")
        if not all(step.cls in BLIND_STEPS for step in self.group.steps):
            raise Unsupported("a step may read the target")

    def scores(self, Y: Array) -> Array:
        """Test scores for q targets, (n, q), on each split, (q, n_splits); NaN: scikit-learn has to fit."""
        out = np.empty((Y.shape[1], self.n_splits))
        for group in self.splits.atom_groups:
            parts = sum_targets(self.data.X, Y, group.rows, self.views[group.splits.start].origin)
            for j, i in enumerate(group.splits):
                train, test = (TargetMoments.merged(parts, roles[j]) for roles in (group.train, group.test))
                try:
                    out[:, i] = self._of_split(i, train, test)
                except Exception:  # scikit-learn fits it, and raises or warns in its own words
                    out[:, i] = np.nan
            self.data.passes += 1.0
        return out

    def _of_split(self, i: int, train: TargetMoments, test: TargetMoments) -> Array:
        view = self.views[i]
        # A constant column has no product with any target, but for rounding.
        varies = np.diagonal(view.plain.xx) > 0.0
        seen = self.seen[i].for_targets(train.y_mean, train.xy * varies[:, None], train.yy)
        answers = self.fit(i, seen)
        moments = test.with_features(self.data.scoring_moments(i, "test"), view.origin.size)
        residuals = residuals_from_moments(answers.linear, moments)
        errors = sum(one.error(moments) for one in answers.roundings)
        size = np.sqrt(residuals.about_zero / residuals.weight)
        y_size = np.sqrt(test.yy / test.rows) + np.abs(test.y_mean)
        lost = lost_predictions(np.asarray(errors).T, size.T, y_size[:, None])
        (scores,) = (self.scoring.from_moments(_each_alone(residuals)) or {}).values()
        constant = test.yy <= MIN_VARIATION * test.rows * test.y_mean**2
        return np.where(lost | constant, np.nan, scores)


def _each_alone(residuals: Residuals) -> Residuals:
    """Residuals of one setting for q targets as those of q settings for one target."""
    r = residuals
    return replace(
        r, about_mean=r.about_mean.T, about_zero=r.about_zero.T, y=r.y[:, None], lost=r.lost.T, varied=True
    )
