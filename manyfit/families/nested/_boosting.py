"""Boosting: the first iterations of the longest fit."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from manyfit._compat import keep_bins
from manyfit.families.nested._binned import BinnedFamily
from manyfit.families.nested._prefix import PrefixFamily, require_known_parts
from manyfit.families.protocol import Answers, Array, Responses, Settings, lazy_responses, register_family
from manyfit.folds import Fold, Unsupported

# Rows up to which the "auto" of early stopping means no, and up to which bins are of all rows.
_MOST_WITHOUT_STOPPING, _MOST_BINNED = 10_000, 200_000


class AdaBoostFamily(PrefixFamily):
    """AdaBoost of scikit-learn's estimators; a fit that ends early holds all longer ones."""

    serves = (AdaBoostClassifier, AdaBoostRegressor)

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, settings)
        require_known_parts(estimator)


class GradientBoostingFamily(PrefixFamily):
    """Gradient boosting of trees, with early stopping or without."""

    serves = (GradientBoostingClassifier, GradientBoostingRegressor)

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, settings)
        if estimator.init not in (None, "zero"):
            raise Unsupported("init is an estimator")


class HistogramBoostingFamily(BinnedFamily):
    """Gradient boosting of histograms, with early stopping or without.

    Settings of a group have `random_state`, and the rows that early stopping holds out, in common.
    """

    serves = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    parameter = "max_iter"
    of_trees = frozenset(
        {"learning_rate", "max_leaf_nodes", "max_depth", "min_samples_leaf", "l2_regularization"}
    )

    def keep_bins(self, estimator: Any, kept: dict[str, Any]) -> AbstractContextManager[None]:
        return keep_bins(estimator, kept)

    def require_repeatable(self, estimator: Any) -> None:
        """See `NestedFamily`; without an integer nothing may be drawn, which the rows decide, too."""
        draws = estimator.early_stopping is True or getattr(estimator, "max_features", 1.0) != 1.0
        if estimator.random_state is not None or draws:
            super().require_repeatable(estimator)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        if estimator.random_state is None:
            limit = _MOST_BINNED if estimator.early_stopping is False else _MOST_WITHOUT_STOPPING
            if len(fold.y_train) > limit:
                raise Unsupported(f"random_state is None, and a fit draws from more than {limit:,} rows")
        return super().fit_fold(estimator, settings, fold)

    def first_responses(self, model: Any, X: Any, values: Sequence[int]) -> Responses:
        """See `BinnedFamily`; the rows go through each tree once."""

        def of_all(method: str) -> Array:
            last = min(max(values), model.n_iter_)
            wanted = {min(n, last) for n in values}
            found: dict[int, Array] = {}
            for n, response in enumerate(getattr(model, f"staged_{method}")(X), start=1):
                if n in wanted:
                    found[n] = np.array(response)
                if n == last:
                    break
            return np.stack([found[min(n, last)] for n in values])

        return lazy_responses(model, of_all)


register_family(AdaBoostFamily())
register_family(GradientBoostingFamily())
register_family(HistogramBoostingFamily())
