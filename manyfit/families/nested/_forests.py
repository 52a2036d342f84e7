"""Forests and bagging: the first trees of the largest forest."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.utils import check_array, get_tags

from manyfit.families.nested._prefix import PrefixFamily, require_known_parts
from manyfit.families.protocol import Responses, register_family

Array = NDArray[Any]


class ForestFamily(PrefixFamily):
    """Random forests and extra trees, whose trees are summed in their order.

    References
    ----------
    sklearn.ensemble.RandomForestClassifier.predict_proba (1.9): the mean of the trees' probabilities.
    """

    serves = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)

    def responses(self, model: Any, X: Any, values: Sequence[int]) -> Responses:
        """See `NestedFamily`; each tree predicts once for all forests that hold it."""
        if model.n_jobs not in (None, 1):  # the trees of each forest then predict in threads
            return super().responses(model, X, values)
        if not is_classifier(model):
            return Responses(predict=lambda: _means(model, "predict", X, values))
        known: list[Array] = []

        def probabilities() -> Array:
            if not known:
                known.append(_means(model, "predict_proba", X, values))
            return known[0]

        return Responses(
            predict=lambda: model.classes_.take(np.argmax(probabilities(), axis=2)),
            predict_proba=probabilities,
        )


def _means(model: Any, method: str, X: Any, values: Sequence[int]) -> Array:
    """Means over the first trees, (n_settings, n_rows, ...), added in scikit-learn's order."""
    may_hold_nan = not scipy.sparse.issparse(X) and get_tags(model.estimators_[0]).input_tags.allow_nan
    finite = "allow-nan" if may_hold_nan else True
    rows = check_array(X, dtype=np.float32, accept_sparse="csr", ensure_all_finite=finite)
    total: Any = 0.0
    means: dict[int, Array] = {}
    for n, tree in enumerate(model.estimators_, start=1):
        total = total + getattr(tree, method)(rows, check_input=False)
        if n in values:
            means[n] = total / n
    return np.stack([means[n] for n in values])


class BaggingFamily(PrefixFamily):
    """Bagging of scikit-learn's estimators: seeds are drawn in order."""

    serves = (BaggingClassifier, BaggingRegressor)

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        super().check(estimator, settings)
        require_known_parts(estimator)


register_family(ForestFamily())
register_family(BaggingFamily())
