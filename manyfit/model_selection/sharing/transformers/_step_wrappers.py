"""Puts wrappers around the transformers of an estimator, and takes them off again."""

from __future__ import annotations

from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from manyfit.arrays import deep_copy
from manyfit.introspection.composites import Child, children, composite_class, replace_children
from manyfit.introspection.randomness import is_deterministic
from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.rows._known_readers import writes_in_place
from manyfit.model_selection.sharing.rows._own_rows import OwnRows
from manyfit.model_selection.sharing.transformers._cached_transformer import CachedTransformer
from manyfit.model_selection.sharing.transformers._composite_rules import (
    is_transformer,
    shares_parts,
    shares_regressor,
)


def share_prefixes(
    estimator: Any, cache: FoldCache, *, ends_in_transformer: bool = False, copies: OwnRows | None = None
) -> Any:
    """Wrap the transformers of an unfitted estimator, in place, so that they take fits from the cache.

    `ends_in_transformer`: the last step of a Pipeline is shared, too. `copies` makes copies of what shared
    steps pass to the predictor. Fit and predict on arrays of `cache.share`; afterwards see `unshare`.
    """
    if not writes_in_place(estimator):
        _wrap_inside(estimator, cache, copies, ends_in_transformer)
    return estimator


def has_shareable_prefix(estimator: Any) -> bool:
    """Whether `share_prefixes` would share a step of an unfitted estimator for data of some shape."""
    return _shares(estimator, ends_in_transformer=False) and not writes_in_place(estimator)


def unshare(estimator: Any) -> Any:
    """Put the transformers back in place of their wrappers, fitted as these are.

    Those from the cache are copied, so that each setting may change its own.
    """
    if type(estimator) is CachedTransformer:
        target = estimator._shared_target
        return deep_copy(target) if estimator._shared_is_cached else unshare(target)
    replace_children(estimator, lambda child: unshare(child.estimator))
    return estimator


# Wrapping


def _wrap(thing: Any, cache: FoldCache, copies: OwnRows | None) -> Any:
    if not is_transformer(thing):
        return thing
    if shares_parts(thing):
        _wrap_inside(thing, cache, copies, ends_in_transformer=True)
    return CachedTransformer(thing, cache)


def _wrap_inside(estimator: Any, cache: FoldCache, copies: OwnRows | None, ends_in_transformer: bool) -> None:
    if composite_class(estimator) is TransformedTargetRegressor:
        if shares_regressor(estimator):
            _wrap_inside(estimator.regressor, cache, copies, ends_in_transformer=False)
    elif not (shares_parts(estimator) and children(estimator)):
        return
    elif composite_class(estimator) is Pipeline:
        _wrap_steps(estimator, cache, copies, ends_in_transformer)
    else:
        replace_children(estimator, lambda child: _wrap(child.estimator, cache, copies))


def _wrap_steps(pipeline: Any, cache: FoldCache, copies: OwnRows | None, ends_in_transformer: bool) -> None:
    names = [child.name for child in children(pipeline)]
    predictor = None if ends_in_transformer else names[-1]

    def wrapped(child: Child) -> Any:
        # A step behind one that draws has its own input in each setting: it is counted, and not shared.
        if child.name != predictor:
            return _wrap(child.estimator, cache, copies)
        _wrap_inside(child.estimator, cache, copies, ends_in_transformer=False)
        return child.estimator

    replace_children(pipeline, wrapped)
    steps = [step for _, step in pipeline.steps]
    shared = [step for step in steps if type(step) is CachedTransformer]
    if shared and shared[-1] is not steps[-1]:  # the next step reads the output as it is
        shared[-1]._shared_copies = copies


# Foreseeing


def _shares(estimator: Any, ends_in_transformer: bool) -> bool:
    if composite_class(estimator) is TransformedTargetRegressor:
        return shares_regressor(estimator) and _shares(estimator.regressor, False)
    if not shares_parts(estimator):
        return False
    parts = [child.estimator for child in children(estimator)]
    if composite_class(estimator) is not Pipeline:
        return any(map(_shares_step, parts))
    last = None if ends_in_transformer or not parts else parts.pop()
    for step in parts:
        if is_transformer(step):  # the first one decides, since its output is the input of the others
            return _shares_step(step)
    return last is not None and _shares(last, False)


def _shares_step(step: Any) -> bool:
    may = is_transformer(step) and is_deterministic(step) is not False
    return may or (shares_parts(step) and _shares(step, True))
