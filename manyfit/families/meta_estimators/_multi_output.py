"""MultiOutputRegressor: one fit for each target, on the same moments of X."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.multioutput import MultiOutputRegressor

from manyfit.families.meta_estimators._transformed_target import answers_on
from manyfit.families.meta_estimators._wrapped import WrappedFamily, register_wrapper
from manyfit.families.protocol import LinearAnswers, Settings
from manyfit.folds import FoldedData, Unsupported
from manyfit.metrics.scoring import LinearPredictors, Rounding


@register_wrapper
class MultiOutputFamily(WrappedFamily):
    """MultiOutputRegressor: the answers of its estimator for each target alone.

    Reference: sklearn.multioutput.MultiOutputRegressor (1.9): a clone is fitted on each column of y.
    """

    wraps = MultiOutputRegressor
    holds = "estimator"

    def fit_many(self, estimator: Any, settings: Settings, folded: FoldedData) -> Iterator[LinearAnswers]:
        for i in range(folded.n_splits):
            view = folded.view(i)
            if view.single_target:
                raise Unsupported("y has one dimension, and several targets need two")
            targets = range(view.plain.y_mean.size)
            yield _side_by_side(
                [answers_on(self.inner, estimator, settings, view.of_targets([k])) for k in targets]
            )


def _side_by_side(parts: Sequence[LinearAnswers]) -> LinearAnswers:
    """Answers for all targets, from those for each; a setting that one refuses is refused."""
    linear = LinearPredictors.joined([one.linear for one in parts], 1)
    refused = {j: why for one in parts for j, why in one.refused.items()}
    return LinearAnswers(linear, refused, _joined_roundings(parts))


def _joined_roundings(parts: Sequence[LinearAnswers]) -> tuple[Rounding, ...]:
    """Roundings for consecutive settings of all targets: directions and noise do not depend on y."""
    joined = []
    for ones in zip(*(one.roundings for one in parts), strict=True):
        first = ones[0]
        norms = np.concatenate([one.norms for one in ones], axis=1)
        noise = np.max([one.noise for one in ones], axis=0)
        joined.append(Rounding(first.origin, first.along, first.at_origin, noise, norms))
    return tuple(joined)
