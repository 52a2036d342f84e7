"""Forests, isolation forests and bagging: the first trees of the largest forest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.utils import check_array, get_tags

from manyfit._compat import scores_of_first_trees
from manyfit.families.nested._prefix import (
    PrefixFamily,
    first_members,
    fit_silently,
    require_known_parts,
    stack_responses,
)
from manyfit.families.nested._trees import first_leaves, largest, pruned, require_sizes
from manyfit.families.protocol import (
    Answers,
    Array,
    Cost,
    ModelAnswers,
    Responses,
    Settings,
    Shape,
    lazy_responses,
    register_family,
)
from manyfit.folds import Fold, Unsupported

# Trees, the most leaves of each, and alpha.
Size = tuple[int, int | None, float]
# Trees, and the share of outliers.
SizeAndShare = tuple[int, Any]


class ForestFamily(PrefixFamily):
    """Random forests and extra trees, whose trees are summed in their order.

    A tree draws from a seed of its own, so that the first trees are those of smaller forests. Each is the
    tree of all its sizes, see `TreeFamily`.

    Reference: sklearn.ensemble.RandomForestClassifier.predict_proba (1.9): the mean of the trees'
    probabilities.
    """

    serves = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)
    free = frozenset({"n_estimators", "ccp_alpha", "max_leaf_nodes"})
    fits_in_threads = True

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, settings)
        require_sizes(settings)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        one, kinds = super().cost(estimator, settings, shape), _by_limit(settings).values()
        members = [[int(setting["n_estimators"]) for setting in kind] for kind in kinds]
        made = sum(map(max, members)) / max(map(max, members))
        return replace(one, shared=one.shared * made, fits=one.fits * len(members))

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        most, grown = largest(settings), {}
        for limited, kind in _by_limit(settings).items():
            forest = clone(estimator).set_params(
                n_estimators=max(setting["n_estimators"] for setting in kind),
                max_leaf_nodes=most[limited],
                ccp_alpha=0.0,
            )
            grown[limited] = fit_silently(forest, fold, many_targets=True)
        sizes = [(s["n_estimators"], s["max_leaf_nodes"], s["ccp_alpha"]) for s in settings]
        return self.answers(grown, sizes, len(grown))

    def responses(self, model: Mapping[bool, Any], X: Any, values: Sequence[Size]) -> Responses:
        """See `NestedFamily`; each tree of each size predicts once for all forests that hold it."""
        any_forest = next(iter(model.values()))
        several = isinstance(getattr(any_forest, "classes_", None), list)
        # With `n_jobs` the trees of each forest predict in threads; of several labels they give lists.
        if several or any_forest.n_jobs not in (None, 1):

            def of_all(method: str) -> Any:
                return stack_responses([getattr(_forest_of(model, size), method)(X) for size in values])

            return lazy_responses(any_forest, of_all)
        if not is_classifier(any_forest):
            return Responses(predict=lambda: _means(model, "predict", X, values))
        probabilities = cache(lambda: _means(model, "predict_proba", X, values))
        return Responses(
            predict=lambda: any_forest.classes_.take(np.argmax(probabilities(), axis=2)),
            predict_proba=probabilities,
        )


def _by_limit(settings: Settings) -> dict[bool, list[Mapping[str, Any]]]:
    """The settings by whether they limit the leaves, which decides in which order trees grow."""
    found: dict[bool, list[Mapping[str, Any]]] = {}
    for setting in settings:
        found.setdefault(setting["max_leaf_nodes"] is not None, []).append(setting)
    return found


def _forest_of(model: Mapping[bool, Any], size: Size) -> Any:
    """A copy of a grown forest with its first trees, of some size."""
    n, most, alpha = size
    forest = first_members(model[most is not None], n)
    forest.estimators_ = [pruned(first_leaves(tree, most), alpha) for tree in forest.estimators_]
    return forest


def _means(model: Mapping[bool, Any], method: str, X: Any, values: Sequence[Size]) -> Array:
    """Means over the first trees, (n_settings, n_rows, ...), added in scikit-learn's order."""
    tree = next(iter(model.values())).estimators_[0]
    may_hold_nan = not scipy.sparse.issparse(X) and get_tags(tree).input_tags.allow_nan
    finite = "allow-nan" if may_hold_nan else True
    rows = check_array(X, dtype=np.float32, accept_sparse="csr", ensure_all_finite=finite)
    means: dict[Size, Array] = {}
    for most, alpha in dict.fromkeys((most, alpha) for _, most, alpha in values):
        wanted = {n for n, *size in values if size == [most, alpha]}
        total: Any = 0.0
        for n, tree in enumerate(model[most is not None].estimators_[: max(wanted)], start=1):
            sized = pruned(first_leaves(tree, most), alpha)
            total = total + getattr(sized, method)(rows, check_input=False)
            if n in wanted:
                means[n, most, alpha] = total / n
    return np.stack([means[size] for size in values])


class IsolationFamily(PrefixFamily):
    """IsolationForest: trees are grown by a seed of their own, and depths are added in their order.

    Reference: sklearn.ensemble.IsolationForest (1.9): ``fit`` and ``score_samples``.
    """

    serves = (IsolationForest,)
    free = frozenset({"n_estimators", "contamination"})

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, settings)
        for setting in settings:
            share = setting["contamination"]
            if isinstance(share, str) and share == "auto":
                continue
            if not (isinstance(share, Real) and 0 < float(share) <= 0.5):
                raise Unsupported(f"contamination={share!r} is neither 'auto' nor a share up to 0.5")

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        values = [(int(s["n_estimators"]), s["contamination"]) for s in settings]
        most, cut = max(n for n, _ in values), {n for n, share in values if share != "auto"}
        forest = fit_silently(clone(estimator).set_params(n_estimators=most, contamination="auto"), fold)
        train_scores = cache(lambda: scores_of_first_trees(forest, fold.X_train, cut))
        return ModelAnswers(values, partial(_isolation_responses, forest, train_scores), fits_made=1)


def _isolation_responses(
    forest: Any, train_scores: Callable[[], Mapping[int, Array]], X: Any, values: Sequence[SizeAndShare]
) -> Responses:
    """Responses of the first trees; `contamination` cuts the scores of the training rows."""
    scores = scores_of_first_trees(forest, X, {n for n, _ in values})

    def offset(n: int, share: Any) -> Any:
        return -0.5 if share == "auto" else np.percentile(train_scores()[n], 100.0 * share)

    def decisions() -> Array:
        return np.stack([scores[n] - offset(n, share) for n, share in values])

    return Responses(
        predict=lambda: np.where(decisions() < 0, -1, 1),
        decision_function=decisions,
        score_samples=lambda: np.stack([scores[n] for n, _ in values]),
    )


class BaggingFamily(PrefixFamily):
    """Bagging of scikit-learn's estimators: seeds are drawn in order."""

    serves = (BaggingClassifier, BaggingRegressor)
    fits_in_threads = True

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, settings)
        require_known_parts(estimator)


register_family(ForestFamily())
register_family(IsolationFamily())
register_family(BaggingFamily())
