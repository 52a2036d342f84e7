"""Which composites share their inner transformers one by one, and whether all of these were shareable."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from manyfit.introspection.composites import children, composite_class
from manyfit.introspection.object_state import Wrapped
from manyfit.introspection.randomness import is_deterministic
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers


def shares_parts(transformer: Any) -> bool:
    """Whether the transformers in a transformer are shared. Exact types: a subclass may do anything.

    Not those of a Pipeline with `memory`, which caches by itself, and of a ColumnTransformer that passes its
    input to functions of the user: each of these is shared as a whole.
    """
    cls = composite_class(transformer)
    if cls is Pipeline:
        return transformer.memory is None
    if cls is ColumnTransformer:
        return not any_of(strangers([child.columns for child in children(transformer)]))
    return cls is FeatureUnion


def shares_regressor(estimator: Any) -> bool:
    """Whether a TransformedTargetRegressor passes targets to nothing else that may write into them."""
    if composite_class(estimator) is not TransformedTargetRegressor:
        return False
    return not any_of(strangers((estimator.func, estimator.inverse_func, estimator.transformer)))


def is_transformer(thing: Any) -> bool:
    """Whether scikit-learn accepts `thing` as a transformer; everything else gets its error messages."""
    return (
        not isinstance(thing, (str, type))
        and not is_wrapped(thing)
        and hasattr(thing, "get_params")
        and hasattr(thing, "transform")
        and (hasattr(thing, "fit") or hasattr(thing, "fit_transform"))
    )


def is_wrapped(thing: Any) -> bool:
    """Whether `thing` is a wrapper around a transformer; ``isinstance`` also sees the transformer's class."""
    return issubclass(type(thing), Wrapped)


def was_fully_shareable(composite: Any) -> bool:
    """Whether all that was fitted in a composite was shareable."""
    for child in children(composite, fitted=True):
        if is_wrapped(child.estimator):
            if child.estimator._shared_fitted is not None and not child.estimator._shared_is_cached:
                return False  # a branch without columns stays unfitted
        elif child.is_estimator and is_deterministic(child.estimator) is not True:
            return False
    return True
