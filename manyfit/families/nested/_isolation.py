"""Isolation forests: the depths in the first trees of the largest forest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import IsolationForest

from manyfit._compat import scores_of_first_trees
from manyfit.families.nested._prefix import NestedAnswers, PrefixFamily, fit_silently
from manyfit.families.protocol import Answers, Array, Responses, register_family
from manyfit.folds import FoldedData, Unsupported

# Trees, and the share of outliers.
Size = tuple[int, Any]


class GrownForest:
    """The forest of most trees, and the scores of its training rows, which `contamination` cuts."""

    def __init__(self, forest: Any, X_train: Any, values: Sequence[Size]) -> None:
        self.forest, self._X_train, self._values = forest, X_train, values

    def offset(self, size: Size) -> Any:
        """The score from which rows are no outliers."""
        n, share = size
        return -0.5 if share == "auto" else np.percentile(self._train[n], 100.0 * share)

    @cached_property
    def _train(self) -> Mapping[int, Array]:
        cut = {n for n, share in self._values if share != "auto"}
        return scores_of_first_trees(self.forest, self._X_train, cut)


class IsolationFamily(PrefixFamily):
    """IsolationForest: trees are grown by a seed of their own, and depths are added in their order.

    Reference: sklearn.ensemble.IsolationForest (1.9): ``fit`` and ``score_samples``.
    """

    serves = (IsolationForest,)
    free = frozenset({"n_estimators", "contamination"})

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        super().check(estimator, settings)
        for setting in settings:
            share = setting["contamination"]
            if isinstance(share, str) and share == "auto":
                continue
            if not (isinstance(share, Real) and 0 < float(share) <= 0.5):
                raise Unsupported(f"contamination={share!r} is neither 'auto' nor a share up to 0.5")

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: FoldedData
    ) -> Iterator[Answers]:
        values = tuple((int(s["n_estimators"]), s["contamination"]) for s in settings)
        largest = clone(estimator).set_params(n_estimators=max(n for n, _ in values), contamination="auto")
        for i in range(folded.n_splits):
            fold = folded.fold(i)
            grown = GrownForest(fit_silently(clone(largest), fold), fold.X_train, values)
            yield NestedAnswers(grown, values, self.responses)

    def responses(self, model: GrownForest, X: Any, values: Sequence[Size]) -> Responses:
        scores = scores_of_first_trees(model.forest, X, {n for n, _ in values})

        def decisions() -> Array:
            return np.stack([scores[size[0]] - model.offset(size) for size in values])

        return Responses(
            predict=lambda: np.where(decisions() < 0, -1, 1),
            decision_function=decisions,
            score_samples=lambda: np.stack([scores[n] for n, _ in values]),
        )


register_family(IsolationFamily())
