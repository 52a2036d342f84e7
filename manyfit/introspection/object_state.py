"""The state of unfitted estimators and of the values of their parameters."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from manyfit._compat import is_metadata_request

SCALARS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
# A copy of these is the same object.
BY_IDENTITY = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    np.ufunc,
    type(np.mean),  # a function that other libraries can override
)
# Levels of nested parameters.
DEEPEST = 50
_KNOWN_PACKAGES = ("sklearn.", "manyfit.", "scipy.sparse.")


class Unkeyable(Exception):
    """Something has no key, so that no work that depends on it is shared."""


class Wrapped:
    """Base class of the wrapper around a shared transformer: keys and rules read the transformer inside."""

    _shared_inner: Any


class _Plain:
    pass


def keep_arguments(estimator: Any, arguments: Mapping[str, Any]) -> None:
    """Keep the arguments of a constructor, its ``locals()``, as attributes."""
    for name in arguments.keys() - {"self", "__class__"}:
        setattr(estimator, name, arguments[name])


def is_plain(thing: Any) -> bool:
    """Whether all state of an object is in its ``__dict__``: its class has neither slots nor a C part."""
    kind = type(thing)
    return kind.__basicsize__ == _Plain.__basicsize__ and not kind.__itemsize__ and hasattr(thing, "__dict__")


def object_state(thing: Any) -> dict[str, Any]:
    """The attributes of an object, without the reference of a metadata request to its estimator."""
    state = vars(thing)
    if is_metadata_request(thing):
        # Only messages use the owner.
        state = {name: value for name, value in state.items() if name != "owner"}
    return state


def is_of_known_package(kind: type) -> bool:
    """Whether plain objects of a class keep all their state in their attributes."""
    return kind.__module__.startswith(_KNOWN_PACKAGES)


def keeps_its_parameters(estimator: Any) -> bool:
    """Whether the parameters of an estimator are its attributes, and its clones are made from them.

    Otherwise (a property, a slot, a computed value, an own ``__sklearn_clone__``) nothing of it is shared.
    """
    kind = type(estimator)
    if is_of_known_package(kind):
        return is_plain(estimator)
    cloned = getattr(kind, "__sklearn_clone__", None)
    own_clones = cloned is not None and cloned is not BaseEstimator.__sklearn_clone__
    if own_clones or not is_plain(estimator):
        return False
    state = vars(estimator)
    try:
        params = estimator.get_params(deep=False)
        return all(name in state and state[name] is value for name, value in params.items())
    except Exception:  # a parameter without an attribute: scikit-learn says what is wrong with it
        return False
