"""Which parameter makes two fits of a setting differ: a random state that is no integer and is used."""

from __future__ import annotations

import functools
import numbers
import types
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaseEnsemble
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import silhouette_score
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from manyfit._compat import PassthroughScorer
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.introspection.randomness import (
    GENERATORS,
    SEEDS,
    Sizes,
    holds_generator,
    is_deterministic,
    randomness_rule,
    tagged_random,
)

# Their output has the columns of their input.
_KEEP_COLUMNS = (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
_COMPOSITES = (Pipeline, FeatureUnion, ColumnTransformer)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial, np.ufunc)
# And scores that are the estimator's own, which is looked at by itself.
_DRAW_NOTHING = (
    type(None), bool, int, float, complex, str, bytes, np.ndarray, np.generic, type, PassthroughScorer,
)  # fmt: skip
_DEEPEST = 50
_UNKNOWN = Sizes()


class RandomParameter(NamedTuple):
    """A parameter that is drawn from, by scikit-learn's name for it, and what is wrong with it."""

    name: str
    why: str


def find_random_parameter(
    thing: Any, name: str = "", sizes: Sizes = _UNKNOWN, depth: int = 0
) -> RandomParameter | None:
    """The first parameter that fits of `thing` may draw from anew, or None if they draw nothing.

    Parameters
    ----------
    thing : object
        An unfitted estimator, a splitter or a parameter value.
    name : str, default=""
        Its own name, which those of its parameters begin with.
    sizes : Sizes
        What is known about the input of a fit; what depends on a size that is not known counts as drawn.
    depth : int, default=0
        How deep in the structure `thing` lies.

    Returns
    -------
    Draw or None
        As `is_deterministic` has it, but that callbacks do not matter: they change no number.
    """
    if isinstance(thing, GENERATORS):
        return RandomParameter(name, f"is a {type(thing).__name__}")
    if depth > _DEEPEST:
        return RandomParameter(name, "lies too deep to be looked at")
    if isinstance(thing, _DRAW_NOTHING) or scipy.sparse.issparse(thing):
        return None
    if type(thing) in (list, tuple, set, frozenset):
        return _first(find_random_parameter(item, name, _UNKNOWN, depth + 1) for item in thing)
    if type(thing) is dict:
        own = _seed(thing, name)
        return own or _first(
            find_random_parameter(v, _join(name, str(k)), _UNKNOWN, depth + 1) for k, v in thing.items()
        )
    if type(thing) is FrozenEstimator:
        return RandomParameter(name, "holds a generator") if holds_generator(thing.estimator) else None
    if isinstance(thing, _FUNCTIONS):
        return _of_function(thing, name)
    return _of_object(thing, name, sizes, depth) if hasattr(thing, "__dict__") else None


def _first(found: Any) -> RandomParameter | None:
    return next((draw for draw in found if draw is not None), None)


def _join(name: str, *more: str) -> str:
    return "__".join(part for part in (name, *more) if part)


def _seed(state: dict[Any, Any], name: str) -> RandomParameter | None:
    for seed in SEEDS:
        if seed in state and not isinstance(state[seed], numbers.Integral):
            value = state[seed]
            return RandomParameter(
                _join(name, seed), "is None" if value is None else f"is a {type(value).__name__}"
            )
    return None


def _of_function(function: Any, name: str) -> RandomParameter | None:
    if function is silhouette_score:  # it draws only where a size of the sample is given
        return None
    if isinstance(function, functools.partial) and function.func is silhouette_score:
        given = function.keywords
        return _seed({"random_state": None} | given, name) if given.get("sample_size") else None
    return (
        None
        if is_deterministic(function) is True
        else RandomParameter(name, "is a function left without a random_state")
    )


def _of_object(thing: Any, name: str, sizes: Sizes, depth: int) -> RandomParameter | None:
    if tagged_random(thing):
        return RandomParameter(name or type(thing).__name__, "is not deterministic, by its tags")
    state = vars(thing)
    rule = randomness_rule(sklearn_class_of(type(thing)))
    own = _seed(state, name)
    if own is not None and not (rule is not None and rule(thing, sizes) is True):
        return own
    if type(thing) is Pipeline:
        return _of_steps(thing, name, sizes, depth)
    below = Sizes(sizes.n_samples) if sklearn_class_of(type(thing)) in _COMPOSITES else _UNKNOWN
    passed_over: tuple[str, ...] = ("_skl_callbacks", *SEEDS)
    if isinstance(thing, BaseEnsemble) and sklearn_class_of(type(thing)).__module__.startswith("sklearn."):
        passed_over += ("estimator",)  # an ensemble seeds its members from its own random state
    return _first(
        _of_attribute(thing, attribute, value, name, below, depth + 1)
        for attribute, value in state.items()
        if attribute not in passed_over
    )


def _of_attribute(
    thing: Any, attribute: str, value: Any, name: str, sizes: Sizes, depth: int
) -> RandomParameter | None:
    # Parts of a composite go by their own names: (name, estimator) or (name, estimator, columns).
    if type(value) in (list, tuple) and value and all(_is_part(item) for item in value):
        return _first(find_random_parameter(item[1], _join(name, item[0]), sizes, depth) for item in value)
    return find_random_parameter(value, _join(name, attribute), sizes, depth)


def _is_part(item: Any) -> bool:
    return type(item) is tuple and len(item) >= 2 and isinstance(item[0], str)


def _of_steps(pipe: Pipeline, name: str, sizes: Sizes, depth: int) -> RandomParameter | None:
    for step_name, step in pipe.steps:
        found = find_random_parameter(step, _join(name, step_name), sizes, depth + 1)
        if found is not None:
            return found
        if step is not None and step != "passthrough" and sklearn_class_of(type(step)) not in _KEEP_COLUMNS:
            sizes = Sizes(sizes.n_samples)
    return None
