"""Which estimators, functions and scorers are known not to write into their input.

Only these get the rows, targets and weights that other fits read, too.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np
import scipy.sparse
import scipy.special

from manyfit._compat import (
    PassthroughScorer,
    negative_likelihood_ratio,
    positive_likelihood_ratio,
    scorer_parts,
    scorers_by_name,
)
from manyfit.introspection.class_names import public_name, sklearn_class_of
from manyfit.introspection.composites import walk
from manyfit.introspection.object_state import DEEPEST, Wrapped
from manyfit.introspection.randomness import GENERATORS
from manyfit.model_selection.sharing.rows._reader_names import READERS

_NAMES = frozenset(f"{module}.{name}" for module, names in READERS.items() for name in names.split())

# No function that these modules export writes into its arguments.
FUNCTIONS = (
    "sklearn.feature_selection",
    "sklearn.metrics",
    "sklearn.metrics.cluster",
    "sklearn.metrics.pairwise",
    "sklearn.preprocessing",
    "manyfit.metrics",
)

# Without centering, scikit-learn's coordinate descent works in X itself, whatever copy_X says.
_UNCENTERED = ("ElasticNetCV", "LassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso")
_WRITES: dict[str, Callable[[Mapping[str, Any]], bool]] = dict.fromkeys(
    (*_UNCENTERED, "MultiTaskLassoCV"), lambda params: not params["fit_intercept"]
)
# A user's function here sees one document at a time, never the rows.
_DOCUMENT_FUNCTIONS = frozenset(("analyzer", "preprocessor", "strip_accents", "tokenizer"))
_VECTORIZERS = frozenset(("CountVectorizer", "HashingVectorizer", "TfidfVectorizer"))

# An estimator with one of these values writes into its input.
_WRITING = {"copy": False, "copy_X": False, "copy_x": False, "overwrite_a": True, "overwrite_b": True}

_COPIES = ("copy", "copy_X", "copy_x")

_VALUES = (str, bytes, numbers.Number, np.generic, np.dtype, np.ndarray, slice, range, types.EllipsisType)


def strangers(thing: Any, depth: int = 0) -> Iterator[Any]:
    """Classes, functions and parameter names, in an unfitted estimator or a value, that may write into rows.

    None, if `thing` may read rows that others read, too.
    """
    if thing is None or isinstance(thing, (*_VALUES, *GENERATORS)) or scipy.sparse.issparse(thing):
        return
    if depth > DEEPEST:
        yield type(thing)
    elif isinstance(thing, Wrapped):
        yield from strangers(thing._shared_inner, depth)
    elif type(thing) in (list, tuple, set, frozenset):
        for item in thing:
            yield from strangers(item, depth + 1)
    elif type(thing) is dict:
        yield from _strange_params(thing, depth)
    elif type(thing) is functools.partial:
        yield from strangers([thing.func, thing.args, thing.keywords], depth)
    elif isinstance(thing, (type, np.ufunc, types.FunctionType, types.BuiltinFunctionType)):
        if not _is_known_function(thing):
            yield thing
    else:
        yield from _strange_object(thing, depth)


def _strange_params(params: Mapping[Any, Any], depth: int) -> Iterator[Any]:
    for name, value in params.items():
        if (name in _WRITING and is_flag(value, _WRITING[name])) or (name == "out" and value is not None):
            yield name
        else:
            yield from strangers(value, depth + 1)


def _strange_object(thing: Any, depth: int) -> Iterator[Any]:
    kind = sklearn_class_of(type(thing))
    if not is_reader(kind):
        yield type(thing)
        return
    params = _params(thing)
    rule = _WRITES.get(kind.__name__)
    if rule is not None and rule(params):
        yield type(thing)
    if kind.__name__ in _VECTORIZERS:
        params = {name: value for name, value in params.items() if name not in _DOCUMENT_FUNCTIONS}
    yield from _strange_params(params, depth)


def _params(thing: Any) -> Mapping[str, Any]:
    """Constructor parameters; all attributes of an object that does not list them (a splitter)."""
    if not hasattr(thing, "get_params"):
        return vars(thing)
    return {name: getattr(thing, name, None) for name in _parameters(cast(Any, type(thing)))}


@functools.cache
def _parameters(cls: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(cls).parameters)  # `get_params` is slower, and each fit calls this


def is_reader(cls: type) -> bool:
    """Whether a class is one of `READERS`: the class itself, and not another of its name."""
    return public_name(cls) in _NAMES


def _is_known_function(thing: Any) -> bool:
    if isinstance(thing, type):  # a dtype
        return thing.__module__ in ("builtins", "numpy")
    if isinstance(thing, np.ufunc):  # np.frompyfunc makes others
        return any(getattr(module, thing.__name__, None) is thing for module in (np, scipy.special))
    if thing in (negative_likelihood_ratio, positive_likelihood_ratio):  # only scorers name these
        return True
    if not isinstance(thing, types.FunctionType) or thing.__name__.startswith("_"):
        return False
    module, _, name = public_name(thing).rpartition(".")
    # One of these modules has no ``__all__``.
    return module in FUNCTIONS and name in getattr(sys.modules[module], "__all__", [name])


def strangers_among_scorers(scorer: Any) -> Iterator[Any]:
    """Classes of scorers and metrics, in a scorer or a bundle, that may write into rows and targets.

    An estimator's own `score` belongs to the estimator.
    """
    for one in scorers_by_name(scorer).values():
        if isinstance(one, PassthroughScorer):
            continue
        made = scorer_parts(one)
        if made is None:
            yield type(one) if not isinstance(one, types.FunctionType) else one
        else:
            metric, _, kwargs, _ = made
            if type(metric).__module__.startswith("manyfit."):  # one of ours around a metric
                metric = vars(metric)["metric"]
            yield from strangers([metric, dict(kwargs)])


def any_of(found: Iterable[Any]) -> bool:
    return next(iter(found), None) is not None


def writes_in_place(estimator: Any) -> bool:
    """Whether an estimator, or anything in it, is set to work in its input (``copy=False``, `copy_X`).

    Another reader of that input would find other numbers in it: only a fit on its own rows is scikit-learn's.
    """
    return any(name in _COPIES and is_flag(value, False) for name, value in walk(estimator))


def is_flag(value: Any, wanted: bool) -> bool:
    """Whether ``if value`` takes the branch of `wanted`, as ``np.False_``, 0 and None do for False.

    A value without a truth counts as `wanted`, since its branch is not known.
    """
    try:
        return bool(value) is wanted
    except Exception:
        return True
