"""RFE as the last estimator: the path to the fewest features passes the other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.feature_selection import RFE

from manyfit._compat.nested import RFEPath
from manyfit.families.nested._composites import ensemble_responses
from manyfit.families.nested._prefix import require_known_parts, require_no_draws
from manyfit.families.protocol import (
    Answers,
    Cost,
    FoldFamily,
    FoldRows,
    ModelAnswers,
    Settings,
    Shape,
    made_or_refused,
    refused_warnings,
    register_family,
)
from manyfit.folds import Fold, Unsupported


class EliminationFamily(FoldFamily):
    """RFE of scikit-learn's estimators; see `RFEPath` for numbers within one elimination."""

    serves = (RFE,)
    free = frozenset({"n_features_to_select"})
    reads = FoldRows(sparse=True, device=False)

    def check(self, estimator: Any, settings: Settings) -> None:
        for setting in settings:
            number = setting["n_features_to_select"]
            if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:  # type: ignore[operator]
                raise Unsupported(f"n_features_to_select={number!r} is not an integer from 1")
        if estimator.verbose:
            raise Unsupported(f"verbose={estimator.verbose!r} prints each fit")
        require_known_parts(estimator)
        require_no_draws(estimator)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        fits = [max(1, shape.n_features - int(s["n_features_to_select"]) + 1) for s in settings]
        one = float(shape.n_splits * shape.n_train * shape.n_features)
        return Cost(one * max(fits), one * sum(fits), fits=shape.n_splits)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        numbers = [int(setting["n_features_to_select"]) for setting in settings]
        path = _path(estimator, numbers, fold)

        def narrowed(k: int) -> Any:
            if k not in path.path_:
                raise Unsupported(f"{k} features are not on the path of eliminations")
            model = clone(estimator).set_params(n_features_to_select=k)
            model.n_features_in_ = fold.X_train.shape[1]
            path.narrow(model, k)
            return model

        models, refused = made_or_refused(narrowed, numbers)
        classes = path.estimator_.classes_ if is_classifier(estimator) else None
        return ModelAnswers(models, ensemble_responses, refused, classes, fits_made=1)


def _path(estimator: Any, numbers: Sequence[int], fold: Fold) -> Any:
    """The path to the smallest number; larger ones than all features, of which RFE warns, are not on it."""
    if is_classifier(estimator) and fold.y_train.ndim != 1:
        raise Unsupported("y has several columns")
    kept = frozenset(k for k in numbers if k <= fold.X_train.shape[1])
    if not kept:
        raise Unsupported("there are fewer features than n_features_to_select")
    params = clone(estimator).get_params(deep=False) | {"n_features_to_select": min(kept)}
    with refused_warnings("a fit"):
        return RFEPath(kept, **params).fit(fold.X_train, fold.y_train)


register_family(EliminationFamily())
