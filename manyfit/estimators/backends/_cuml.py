"""Estimators that cuML works on, on CuPy's and cuDF's data: through its own conversion of scikit-learn's."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from manyfit._compat import output_container, validate_parameters
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.arrays import Place, container_kind, container_place, container_to_host
from manyfit.estimators._catalog import Cuml
from manyfit.estimators._method_call import (
    STATE,
    FitRecord,
    MethodCall,
    forget,
    labels_place,
    with_labels,
    x_place,
)
from manyfit.folds import Unsupported

LIBRARIES = ("cupy", "cudf")
# What cuML raises of parameters and data that it does not serve: its UnsupportedOnGPU is a ValueError. What
# is wrong with them whoever fits, scikit-learn then says in its own words.
_REFUSALS = (ValueError, TypeError, NotImplementedError)

_OURS = ("n_features_in_", "feature_names_in_")


def fit(call: MethodCall, model: Any) -> Any:
    """Fit by cuML's estimator of `made`, or of the fit that a call goes on with, where X lies.

    Raises
    ------
    Unsupported
        If cuML refuses the data.
    """
    estimator = call.estimator
    if call.name == "fit_transform" and output_container(estimator) != "default":
        raise Unsupported(f"its output is to be a frame of {output_container(estimator)}")
    validate_parameters(estimator)
    method = _method(model, call)
    try:
        result = method(*_leading(call), **_given(call))
    except _REFUSALS as error:
        raise Unsupported(f"cuML refuses: {error}") from error
    state = FitRecord("cuml", labels_place(call.y), None, model, x_place(call.X))
    names = _feature_names(call.X)
    forget(estimator)
    setattr(estimator, STATE, state)
    if len(getattr(call.X, "shape", ())) == 2:
        estimator.n_features_in_ = int(call.X.shape[1])
    if names is not None:
        estimator.feature_names_in_ = names
    return estimator if result is model else call.settle(result)


def ask(call: MethodCall, state: FitRecord) -> Any:
    """Run a method of cuML's fitted estimator, on data of any place.

    Raises
    ------
    Unsupported
        If it has no such method or refuses the data.
    """
    if call.name == "transform" and output_container(call.estimator) != "default":
        raise Unsupported(f"its output is to be a frame of {output_container(call.estimator)}")
    _check_names(call)
    method = _method(state.model, call)
    try:
        with _texts_at_home(call, state.model):
            result = method(*_leading(call), **_given(call))
    except _REFUSALS as error:
        if not _converts(call.estimator, state):
            raise  # nobody else can say what is wrong
        raise Unsupported(f"cuML refuses: {error}") from error
    return call.settle(result)


def may_have(name: str) -> bool:
    """Whether a name is that of a fitted attribute which cuML's estimator, or its conversion, may have.

    scikit-learn asks for other names all the time, and for two of these that a fit sets: that costs nothing.
    """
    return name.endswith("_") and not name.startswith("_") and name not in _OURS


def attribute(estimator: Any, state: FitRecord, name: str) -> Any:
    """A fitted attribute that cuML's estimator has, or the one that it makes of itself for scikit-learn.

    Raises
    ------
    AttributeError
        If neither has it.
    """
    holder = state.model if hasattr(state.model, name) else at_home(estimator, state)
    value = getattr(holder, name)
    if name == "classes_":
        return with_labels(value, state, None)
    return value if container_kind(value) else _cupy().move(value)


def at_home(estimator: Any, state: FitRecord) -> Any:
    """scikit-learn's estimator with the fitted attributes on the host; made once a fit.

    Raises
    ------
    AttributeError
        If cuML does not convert this estimator.
    """
    if "home" not in state.cache:
        twin, reason, home = sklearn_class_of(type(estimator)), None, None
        try:
            home = state.model.as_sklearn()
        except (AttributeError, ImportError, *_REFUSALS) as error:  # no such method, or it refuses this fit
            reason = error
        if not isinstance(home, twin):  # HDBSCAN's and UMAP's are of packages of their own
            raise AttributeError(
                f"{twin.__name__} was fitted by cuML, which does not convert it to scikit-learn's"
            ) from reason
        state.cache["home"] = home
    return state.cache["home"]


def _texts_at_home(call: MethodCall, model: Any) -> AbstractContextManager[Any]:
    """CuPy has no texts: labels that are, cuML gives as NumPy's or not at all."""
    decodes = call.leading == "y" and call.name == "inverse_transform"
    classes = getattr(model, "classes_", ()) if call.gives_labels or decodes else ()
    several = classes if isinstance(classes, list | tuple) else [classes]
    if all(np.asarray(container_to_host(one)).dtype.kind in "biuf" for one in several):
        return nullcontext()
    output: AbstractContextManager[Any] = import_module("cuml").using_output_type("numpy")
    return output


def _converts(estimator: Any, state: FitRecord) -> bool:
    try:
        at_home(estimator, state)
    except AttributeError:
        return False
    return True


def made(estimator: Any, cuml: Cuml) -> Any:
    """cuML's estimator with the parameters of scikit-learn's.

    Raises
    ------
    Unsupported
        If cuML is not installed, has no such class, or refuses a parameter.
    """
    module, _, name = cuml.path.rpartition(".")
    try:
        cls = getattr(import_module(module), name)
    except ImportError as error:
        raise Unsupported("cuML is not installed") from error
    except AttributeError as error:
        raise Unsupported(f"this version of cuML has no {cuml.path}") from error
    try:
        changes = {} if cuml.changes is None else cuml.changes(estimator)
        if cuml.converts and hasattr(cls, "from_sklearn"):
            fresh = type(estimator)(**estimator.get_params(deep=False))
            model = cls.from_sklearn(fresh).set_params(**changes)
        else:
            model = cls(**_by_name(estimator, cls, {*cuml.ignored, *changes}), **changes)
    except _REFUSALS as error:
        raise Unsupported(f"cuML refuses: {error}") from error
    model.output_type = "input"  # `from_sklearn` sets NumPy's
    return model


def _by_name(estimator: Any, cls: Any, without: set[str]) -> dict[str, Any]:
    """Parameters that are not what cuML takes them to be, if it has all of them."""
    known, theirs = inspect.signature(cls).parameters, cls().get_params()
    defaults = inspect.signature(sklearn_class_of(type(estimator))).parameters
    params = estimator.get_params(deep=False).items()
    # Some defaults are not scikit-learn's; where cuML does not say its own, they are.
    given = {
        name: value for name, value in params if _differs(value, theirs.get(name, defaults[name].default))
    }
    unknown = sorted(set(given) - without - set(known))
    if unknown and not _takes_any(known):
        raise ValueError(f"{cls.__name__} has no parameter {', '.join(unknown)}")
    return {name: value for name, value in given.items() if name not in without}


def _differs(value: Any, default: Any) -> bool:
    return value is not default and not (type(value) is type(default) and np.array_equal(value, default))


def _takes_any(known: Mapping[str, inspect.Parameter]) -> bool:
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())


def _method(model: Any, call: MethodCall) -> Any:
    method = getattr(model, call.name, None)
    if method is None:
        raise Unsupported(f"cuML's {type(model).__name__} has no {call.name}")
    known = inspect.signature(method).parameters
    unknown = [name for name in call.given if name != call.leading and name not in known]
    if unknown and not _takes_any(known):
        raise Unsupported(f"cuML's {type(model).__name__}.{call.name} takes no {', '.join(unknown)}")
    return method


def _leading(call: MethodCall) -> list[Any]:
    """What the rows are from, by its place: cuML calls texts otherwise."""
    return [_argument(call.leading, call.X)] if call.leading in call.given else []


def _given(call: MethodCall) -> dict[str, Any]:
    """The other arguments; None where y is left out."""
    others = {name: value for name, value in call.given.items() if name != call.leading}
    return {
        name: _argument(name, value) for name, value in others.items() if name != "y" or value is not None
    }


def _argument(name: str, value: Any) -> Any:
    """CuPy's and cuDF's as they are, others as NumPy has them."""
    place = container_place(value)
    if place is not None:
        return value if place.library in LIBRARIES else container_to_host(value)
    return np.asarray(value) if name in ("X", "y", "sample_weight") and hasattr(value, "iloc") else value


def _feature_names(X: Any) -> np.ndarray | None:
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(list(columns), dtype=object)


def _check_names(call: MethodCall) -> None:
    known, given = vars(call.estimator).get("feature_names_in_"), _feature_names(call.X)
    if known is not None and given is not None and list(known) != list(given):
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"{list(known)}, got {list(given)}."
        )


def _cupy() -> Place:
    place = container_place(import_module("cupy").empty(0))
    assert place is not None
    return place
