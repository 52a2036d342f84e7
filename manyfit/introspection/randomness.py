"""Random parameters: what makes two fits of equal estimators on the same input give different results."""

from __future__ import annotations

import functools
import inspect
import numbers
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.compose import ColumnTransformer
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
from sklearn.utils import get_tags

from manyfit._compat import PassthroughScorer, has_callbacks
from manyfit.introspection._function_code import GENERATORS as GENERATORS
from manyfit.introspection._function_code import code_draws
from manyfit.introspection._unused_seeds import UNKNOWN_SIZES
from manyfit.introspection._unused_seeds import Sizes as Sizes
from manyfit.introspection._unused_seeds import ignores_random_state as ignores_random_state
from manyfit.introspection.class_names import is_instance, sklearn_class_of
from manyfit.introspection.object_state import BY_IDENTITY, DEEPEST, SCALARS, Wrapped, object_state

SEEDS = ("random_state", "seed", "random_seed", "rng")
# The rows of their inner input are those of their own input; the columns are not known.
_COMPOSITES = (Pipeline, FeatureUnion, ColumnTransformer)
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
# The scorer is the estimator's own `score`; the estimator is checked by itself.
_NOT_RANDOM = (*SCALARS, np.ndarray, np.generic, PassthroughScorer)
_CALLBACKS = "has callbacks, which see every fit"
_UNSEEDED_FUNCTION = "is a function left without a random_state"
_DRAWING_FUNCTION = "is a function whose code draws random numbers"
_DRAWING_CLASS = "has methods whose code draws random numbers"
# A generator is not searched for among more items than this.
_WIDEST = 1_000


class RandomParameter(NamedTuple):
    """A parameter that makes fits differ, by scikit-learn's name for it, and why it does.

    It is `certain` unless that depends on sizes of the input that are not known.
    """

    name: str
    why: str
    certain: bool = True


def is_deterministic(thing: Any, sizes: Sizes = UNKNOWN_SIZES) -> bool | None:
    """Whether all fits of an unfitted estimator on the same input are equal; None if unknown sizes decide."""
    unsure = False
    for found in _random_parameters(thing, "", sizes, 0):
        if found.certain:
            return False
        unsure = True
    return None if unsure else True


def find_random_parameter(thing: Any, name: str = "", sizes: Sizes = UNKNOWN_SIZES) -> RandomParameter | None:
    """The first random parameter of an estimator, a splitter or a scorer, or None.

    `name` is put before the names of its parameters. Callbacks do not count, since they change no number.
    """
    found = _random_parameters(thing, name, sizes, 0)
    return next((one for one in found if one.why != _CALLBACKS), None)


def holds_generator(fitted: Any, depth: int = 0) -> bool:
    """Whether a fitted transformer keeps a random generator, so that `transform` changes it."""
    if isinstance(fitted, GENERATORS):
        return True
    if depth > 6 or type(fitted) in SCALARS or isinstance(fitted, (np.ndarray, *BY_IDENTITY)):
        return False
    if isinstance(fitted, Wrapped):
        fitted = getattr(fitted, "_shared_fitted", None)
    if type(fitted) in (list, tuple, dict):
        if len(fitted) > _WIDEST:
            return False
        items = fitted.values() if type(fitted) is dict else fitted
        return any(holds_generator(item, depth + 1) for item in items)
    if not hasattr(fitted, "__dict__"):
        return False
    ignored = ignores_random_state(fitted, sklearn_class_of(type(fitted)), UNKNOWN_SIZES) is True
    values = (value for name, value in vars(fitted).items() if not (ignored and name in SEEDS))
    return any(holds_generator(value, depth + 1) for value in values)


def _random_parameters(thing: Any, name: str, sizes: Sizes, depth: int) -> Iterator[RandomParameter]:
    """All random parameters of an unfitted estimator, or of a value inside one."""
    if isinstance(thing, _NOT_RANDOM) or scipy.sparse.issparse(thing):
        return
    if isinstance(thing, GENERATORS):
        yield RandomParameter(name, f"is a {type(thing).__name__}")
    elif depth > DEEPEST:
        yield RandomParameter(name, "lies too deep to be checked")
    elif isinstance(thing, Wrapped):
        yield from _random_parameters(thing._shared_inner, name, sizes, depth)
    elif type(thing) in (list, tuple, set, frozenset):
        for item in thing:
            if type(item) not in SCALARS:
                yield from _random_parameters(item, name, sizes, depth + 1)
    elif type(thing) is dict:
        yield from _unseeded(thing, name)
        for key, value in thing.items():
            yield from _random_parameters(value, _join(name, str(key)), sizes, depth + 1)
    elif type(thing) is FrozenEstimator:  # its fit does nothing
        if holds_generator(thing.estimator):
            yield RandomParameter(name, "holds a generator")
    elif isinstance(thing, (*BY_IDENTITY, types.MethodType, functools.partial)):
        yield from _in_function(thing, name, depth + 1)
    elif hasattr(thing, "__dict__"):
        yield from _in_object(thing, name, sizes, depth + 1)


def _join(name: str, inner: str) -> str:
    return f"{name}__{inner}" if name and inner else name or inner


def _unseeded(values: Mapping[Any, Any], name: str) -> Iterator[RandomParameter]:
    """Random states among parameters that are no integers."""
    for seed in SEEDS:
        if seed in values and not isinstance(values[seed], numbers.Integral):
            value = values[seed]
            why = "is None" if value is None else f"is a {type(value).__name__}"
            yield RandomParameter(_join(name, seed), why)


# Functions


def _in_function(function: Any, name: str, depth: int) -> Iterator[RandomParameter]:
    called, given, held = function, {}, []
    if isinstance(function, functools.partial):
        called, given = function.func, function.keywords
        held = [function.args, given, *([] if isinstance(called, types.FunctionType) else [called])]
    elif isinstance(function, type) or not callable(function):
        return
    else:  # RandomState().normal, or the method of another object
        owner = getattr(function, "__self__", None)
        held = [] if owner is None or isinstance(owner, types.ModuleType) else [owner]
    if called is silhouette_score:  # it draws rows only if it is given a number of them
        if given.get("sample_size"):
            yield from _unseeded({"random_state": None} | given, name)
        return
    if _is_unseeded(called, given):
        yield RandomParameter(name, _UNSEEDED_FUNCTION)
    if code_draws(called):
        yield RandomParameter(name, _DRAWING_FUNCTION)
    for found in _random_parameters(held, name, UNKNOWN_SIZES, depth):
        yield RandomParameter(name, _UNSEEDED_FUNCTION, found.certain)


def _is_unseeded(function: Callable[..., Any], given: dict[str, Any]) -> bool:
    """Whether a function takes a random state and is given none (`mutual_info_classif`)."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not set(SEEDS) & set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        return False
    defaults = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    return any(_unseeded(defaults | given, ""))


# Objects


def _in_object(thing: Any, name: str, sizes: Sizes, depth: int) -> Iterator[RandomParameter]:
    cls, state = sklearn_class_of(type(thing)), object_state(thing)
    if has_callbacks(thing):
        yield RandomParameter(name, _CALLBACKS)
    if _is_tagged_random(thing, cls):
        yield RandomParameter(name or type(thing).__name__, "is not deterministic, by its tags")
    if code_draws(type(thing)):
        yield RandomParameter(name or type(thing).__name__, _DRAWING_CLASS)
    if any(_unseeded(state, name)):
        unused = ignores_random_state(thing, cls, sizes)
        if unused is not True:
            yield from (one._replace(certain=unused is False) for one in _unseeded(state, name))
    skipped = {"_skl_callbacks", *SEEDS}
    if is_instance(thing, "sklearn.ensemble.BaseEnsemble") and cls.__module__.startswith("sklearn."):
        skipped.add("estimator")  # an ensemble seeds its members from its own random state
    inside = Sizes(sizes.n_samples) if cls in _COMPOSITES else UNKNOWN_SIZES
    for attribute, value in state.items():
        if attribute in skipped or type(value) in SCALARS:
            continue
        if _are_named(value):
            yield from _in_parts(value, name, sizes if cls is Pipeline else inside, depth + 1)
        else:
            yield from _random_parameters(value, _join(name, attribute), inside, depth)


def _are_named(items: Any) -> bool:
    """Whether these are parts of a composite: (name, estimator) or (name, estimator, columns)."""
    return (
        type(items) in (list, tuple)
        and bool(items)
        and all(type(item) is tuple and len(item) >= 2 and isinstance(item[0], str) for item in items)
    )


def _in_parts(parts: Any, name: str, sizes: Sizes, depth: int) -> Iterator[RandomParameter]:
    """Random parameters of the parts of a composite, of which the first has input of these sizes."""
    for inner, part, *columns in parts:
        yield from _random_parameters(part, _join(name, inner), sizes, depth)
        yield from _random_parameters(columns, _join(name, inner), UNKNOWN_SIZES, depth)
        part = part._shared_inner if isinstance(part, Wrapped) else part
        kept = part is None or isinstance(part, str) or sklearn_class_of(type(part)) in _KEEP_COLUMNS
        sizes = sizes if kept else Sizes(sizes.n_samples)


def _is_tagged_random(thing: Any, cls: type) -> bool:
    if not hasattr(thing, "__sklearn_tags__") or cls in _COMPOSITES:
        return False  # the tag of a composite says nothing about its parts
    try:
        return bool(get_tags(thing).non_deterministic)
    except Exception:  # a user's own tags: scikit-learn says what is wrong with them
        return True
