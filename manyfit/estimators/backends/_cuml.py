"""Fits and methods by cuML, on CuPy's and cuDF's data."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from typing import Any

import numpy as np

from manyfit._compat import validate_parameters
from manyfit.arrays import Place, container_kind, container_place, container_to_host
from manyfit.estimators._catalog import Cuml
from manyfit.estimators._method_call import (
    RECORD,
    FitRecord,
    MethodCall,
    clear_fit,
    place_labels,
    portable_label_place,
    portable_place,
    refuse_frame_output,
)
from manyfit.exceptions import Unsupported
from manyfit.introspection.class_names import sklearn_class_of

LIBRARIES = ("cupy", "cudf")
# cuML raises these for parameters and data that it does not support: its UnsupportedOnGPU is a ValueError.
# scikit-learn raises its own error afterwards if they are wrong for any backend.
_REFUSALS = (ValueError, TypeError, NotImplementedError)

# Fitted attributes that `fit` sets itself.
_SET_BY_FIT = ("n_features_in_", "feature_names_in_")


def fit(call: MethodCall, model: Any) -> Any:
    """Fit cuML's estimator, a new one or that of earlier partial fits; Unsupported if it refuses the data."""
    estimator = call.estimator
    if call.name == "fit_transform":
        refuse_frame_output(estimator)
    validate_parameters(estimator)
    method = _method(model, call)
    try:
        result = _call(method, call)
    except _REFUSALS as error:
        raise Unsupported(f"cuML refuses: {error}") from error
    record = FitRecord("cuml", portable_label_place(call.y), None, model, portable_place(call.X))
    names = _feature_names(call.X)
    clear_fit(estimator)
    setattr(estimator, RECORD, record)
    if len(getattr(call.X, "shape", ())) == 2:
        estimator.n_features_in_ = int(call.X.shape[1])
    if names is not None:
        estimator.feature_names_in_ = names
    return estimator if result is model else call.place_result(result)


def run_method(call: MethodCall, record: FitRecord) -> Any:
    """Run a method of cuML's fitted estimator; Unsupported if it has no such method or refuses the data."""
    if call.name == "transform":
        refuse_frame_output(call.estimator)
    _check_names(call)
    method = _method(record.model, call)
    try:
        with _output_type(call, record.model):
            result = _call(method, call)
    except _REFUSALS as error:
        with suppress(AttributeError):  # not converted, there is no fallback that could explain the error
            convert_to_sklearn(call.estimator, record)
            raise Unsupported(f"cuML refuses: {error}") from error
        raise
    return call.place_result(result)


def is_fitted_name(name: str) -> bool:
    """Whether cuML's estimator, or its conversion, may have a fitted attribute of this name.

    scikit-learn reads other names all the time, which must cost nothing.
    """
    return name.endswith("_") and not name.startswith("_") and name not in _SET_BY_FIT


def read_attribute(estimator: Any, record: FitRecord, name: str) -> Any:
    """A fitted attribute of cuML's estimator, or of its conversion to scikit-learn's."""
    holder = record.model if hasattr(record.model, name) else convert_to_sklearn(estimator, record)
    value = getattr(holder, name)
    if name == "classes_":
        return place_labels(value, record, None)
    return value if container_kind(value) else _cupy().move(value)


def convert_to_sklearn(estimator: Any, record: FitRecord) -> Any:
    """scikit-learn's estimator with the fitted attributes on the host, converted once a fit.

    Raises AttributeError if cuML does not convert this estimator.
    """
    if "converted" not in record.cache:
        sklearn_class, reason, converted = sklearn_class_of(type(estimator)), None, None
        try:
            converted = record.model.as_sklearn()
        except (AttributeError, ImportError, *_REFUSALS) as error:  # no such method, or it refuses this fit
            reason = error
        if not isinstance(converted, sklearn_class):  # HDBSCAN and UMAP become classes of other packages
            raise AttributeError(
                f"{sklearn_class.__name__} was fitted by cuML, which does not convert it to scikit-learn's"
            ) from reason
        record.cache["converted"] = converted
    return record.cache["converted"]


def _output_type(call: MethodCall, model: Any) -> AbstractContextManager[Any]:
    """cuML's output type of NumPy for labels that are text, which CuPy cannot hold."""
    decodes = call.leading == "y" and call.name == "inverse_transform"
    classes = getattr(model, "classes_", ()) if call.predicts_labels or decodes else ()
    several = classes if isinstance(classes, list | tuple) else [classes]
    if all(np.asarray(container_to_host(one)).dtype.kind in "biuf" for one in several):
        return nullcontext()
    output: AbstractContextManager[Any] = import_module("cuml").using_output_type("numpy")
    return output


def make_model(estimator: Any, cuml: Cuml) -> Any:
    """cuML's estimator with scikit-learn's parameters.

    Raises Unsupported if cuML is not installed, has no such class, or refuses a parameter.
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
    model.output_type = "input"  # `from_sklearn` sets NumPy
    return model


def _by_name(estimator: Any, cls: Any, without: set[str]) -> dict[str, Any]:
    """Parameters whose values are not cuML's defaults; ValueError if cuML lacks one of them."""
    known, theirs = inspect.signature(cls).parameters, cls().get_params()
    defaults = inspect.signature(sklearn_class_of(type(estimator))).parameters
    params = estimator.get_params(deep=False).items()
    # cuML's defaults may differ from scikit-learn's, which hold for parameters without a default of cuML's.
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


def _call(method: Any, call: MethodCall) -> Any:
    """The result of a method; rows are given by position, since cuML's vectorizers name them differently."""
    given = {name: _argument(name, value) for name, value in call.given.items()}
    rows = [given.pop(call.leading)] if call.leading in given else []
    return method(*rows, **{name: value for name, value in given.items() if name != "y" or value is not None})


def _argument(name: str, value: Any) -> Any:
    """CuPy's and cuDF's containers as they are, any other as NumPy holds it."""
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
