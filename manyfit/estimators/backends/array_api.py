"""Estimators that work where an array lies: by scikit-learn's array API dispatch, or fitted by ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse
from joblib import parallel_config
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets

from manyfit._compat import array_api_dispatch, has_glm_loss, output_container, set_glm_loss
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.arrays import (
    Place,
    array_namespace,
    container_kind,
    container_place,
    container_to_host,
    dtype_kind,
    float_dtype,
    is_array,
    numpy_dtype,
    refuse_complex,
)
from manyfit.estimators._catalog import ALL, Dispatch
from manyfit.estimators._method_call import (
    STATE,
    FitRecord,
    MethodCall,
    forget,
    labels_place,
    of_texts,
    with_labels,
    x_place,
)
from manyfit.estimators.backends._native_registry import Fitter, fitter_of
from manyfit.folds import Unsupported
from manyfit.introspection.composites import last_step

# Whose arrays scikit-learn says that it works on.
DISPATCHED = ("array_api_strict", "cupy", "torch", "dpnp")
# Fit parameters that are read row by row, or are compared with y.
_WITH_X = ("X", "y", "sample_weight", "classes")
# Attributes that rows are multiplied with, which a library may refuse where their dtypes differ.
_FACTORS = ("coef_", "components_", "scalings_")


def why_no_dispatch(estimator: Any, place: Place, n_targets: int = 1) -> str | None:
    """Why scikit-learn does not fit an estimator to arrays of a place, where they lie; None if it does."""
    dispatch = dispatch_of(estimator)
    if dispatch is None:
        return "scikit-learn works on it on the host only"
    if place.kind != "array":
        return f"scikit-learn does not work on a {place.library} {place.kind}"
    if place.library not in DISPATCHED:
        return f"scikit-learn does not work on arrays of {place.library}"
    return dispatch.refuses(estimator, n_targets)


def fit_by_dispatch(call: MethodCall) -> Any:
    """Fit by scikit-learn, where X lies.

    Raises
    ------
    Unsupported
        If scikit-learn does not work there with these data.
    """
    place = call.place
    assert place is not None and place.kind == "array"
    _check_container(call)
    given, state = _labels_as_numbers(call, place, "scikit-learn")
    if getattr(call.estimator, "warm_start", False) and not place.is_same(attributes_place(call.estimator)):
        forget(call.estimator)  # what it would start from lies elsewhere
    # Who reads no y is sent none, nor who hands it on: what it holds brings it, and knows it again if shared.
    reads_y = get_tags(call.estimator).target_tags.required
    unread = {} if reads_y or "y" not in given else {"y": given.pop("y")}
    given = _all_brought(call, given, place) | unread
    dispatch = dispatch_of(call.estimator)
    if dispatch is not None and dispatch.check is not None:
        dispatch.check(call.estimator, given["X"], given.get("sample_weight"))
    with _dispatched(call.estimator, given):
        result = call.run(lambda name, _: given[name], move=_mover(place))
    _fitted(call, state)
    return result


def fit_by_ours(call: MethodCall) -> Any:
    """Fit by one of our own fitters.

    Raises
    ------
    Unsupported
        If it does not serve these data.
    """
    place, fitter = call.place, fitter_of(sklearn_class_of(type(call.estimator)))
    assert place is not None and fitter is not None
    others = set(call.given) - {"X", "y", "sample_weight"}
    if call.name not in ("fit", "fit_transform") or others:
        raise Unsupported("manyfit has no fit of its own for it")
    _check_container(call)
    given, state = _labels_as_numbers(call, place, "own")
    parts = [_as_array(given.get(name), place) for name in ("y", "sample_weight")]
    fresh = type(call.estimator)(**call.estimator.get_params(deep=False))
    fitter.fit(fresh, _all_brought(call, {"X": given["X"]}, place)["X"], *parts)
    forget(call.estimator)
    vars(call.estimator).update(vars(fresh))
    _fitted(call, state)
    return call.estimator if call.name == "fit" else call.estimator.transform(call.X)


def ask(call: MethodCall, state: FitRecord) -> Any:
    """Run a method of an estimator that was fitted where its attributes lie, on data of any place."""
    estimator = call.estimator
    place = attributes_place(estimator) or call.place
    if place is None or scipy.sparse.issparse(call.X):
        return call.settle(call.at_home(at_home(estimator)))
    _check_container(call)
    if state.classes is None:
        return call.settle(_run(call, place, state, estimator))
    numbered = _shallow(estimator)
    numbered.classes_ = place.as_array(np.arange(len(state.classes)))
    result = _run(call, place, state, numbered)
    if call.gives_labels:
        result = state.classes[container_to_host(result)]
    return call.settle(result)


def _run(call: MethodCall, place: Place, state: FitRecord, estimator: Any) -> Any:
    fitter: Fitter | None = (
        fitter_of(sklearn_class_of(type(call.estimator))) if state.route == "own" else None
    )
    method = fitter.methods.get(call.name) if fitter is not None else None
    given = _all_brought(call, _without_known_classes(call), place)
    if method is not None:
        return method(estimator, **given)
    with _dispatched(estimator, given):
        if "X" in given:
            estimator, given["X"] = _of_one_dtype(estimator, given["X"])
        return call.run(lambda name, _: given[name], estimator, _mover(place))


def _without_known_classes(call: MethodCall) -> dict[str, Any]:
    """Arguments, less classes that the estimator knows: scikit-learn compares these on the host."""
    given, known = dict(call.given), vars(call.estimator).get("classes_")
    if known is None or given.get("classes") is None:
        return given
    if np.array_equal(np.unique(container_to_host(given["classes"])), container_to_host(known)):
        given["classes"] = None
    return given


@contextmanager
def _dispatched(estimator: Any, given: dict[str, Any]) -> Iterator[None]:
    """scikit-learn on the device, whose X is to be of floats; who holds others hands on what it is given."""
    holds = _holds(estimator)
    if not holds and "X" in given:
        given["X"] = _floating(given["X"])
    # Other processes have no such device; threads would not know that dispatch is on.
    with array_api_dispatch(), parallel_config("sequential") if holds else nullcontext():
        yield


def _mover(place: Place) -> Callable[[Any], Any]:
    """Brings arrays on a device to a place of it."""
    return lambda value: value if place.is_same(container_place(value)) else place.as_array(value)


def _holds(estimator: Any) -> bool:
    dispatch = dispatch_of(estimator)
    return dispatch is not None and dispatch.holds


def attributes_place(estimator: Any) -> Place | None:
    """Where the fitted attributes lie: None on the host, or where there are none that are arrays.

    Labels do not count, which follow y, nor do parameters, which are the user's.
    """
    for name, value in vars(estimator).items():
        fitted = name[-1] == "_" or name[0] == "_"
        if fitted and name != "classes_" and container_kind(value):
            return container_place(value)
    return None


def come_home(estimator: Any) -> None:
    """Make an estimator the host's own before a fit there; a warm start reads what was fitted before."""
    vars(estimator).pop(STATE, None)
    if getattr(estimator, "warm_start", False):
        vars(estimator).update({name: container_to_host(value) for name, value in vars(estimator).items()})


def at_home(estimator: Any) -> Any:
    """A copy of a fitted estimator with its attributes on the host, as scikit-learn has them."""
    other = _shallow(estimator)
    vars(other).pop(STATE, None)
    for name, value in vars(estimator).items():
        if container_kind(value):
            setattr(other, name, container_to_host(value))
    if has_glm_loss(other):
        set_glm_loss(other)  # that of a fit by dispatch is of the device's library
    return other


def gives_labels_there(estimator: Any) -> bool:
    """Whether labels that a fitted estimator, or a pipeline, predicts go elsewhere than to the host."""
    state: FitRecord | None = getattr(last_step(estimator), "__dict__", {}).get(STATE)
    return state is not None and state.labels is not None


def labels_at_home(estimator: Any) -> Any:
    """A fitted estimator, or a pipeline that ends in one, with labels on the host: scorers read them."""
    if isinstance(estimator, Pipeline):
        *before, (name, last) = estimator.steps
        other = _shallow(estimator)
        other.steps = [*before, (name, labels_at_home(last))]
        return other
    state: FitRecord | None = getattr(estimator, "__dict__", {}).get(STATE)
    if state is None or state.labels is None:
        return estimator
    other, classes = _shallow(estimator), vars(estimator).get("classes_")
    setattr(other, STATE, replace(state, labels=None))
    if container_kind(classes):
        other.classes_ = container_to_host(classes)
        if state.route in ("own", "scikit-learn") and state.classes is None:
            getattr(other, STATE).classes = other.classes_
    return other


def _shallow(estimator: Any) -> Any:
    other = object.__new__(type(estimator))
    vars(other).update(vars(estimator))
    return other


def dispatch_of(estimator: Any) -> Dispatch | None:
    """What scikit-learn's dispatch is declared to serve of an estimator, or of a user's subclass of one."""
    for cls in type(estimator).__mro__:
        if cls.__module__ == "manyfit.estimators" and cls.__name__ in ALL:
            return ALL[cls.__name__].dispatch
    return None


def _check_container(call: MethodCall) -> None:
    # Who holds others transforms when it is fitted.
    transforms = call.name in ("transform", "fit_transform") or _holds(call.estimator)
    if transforms and output_container(call.estimator) != "default":
        raise Unsupported(f"its output is to be a frame of {output_container(call.estimator)}")


def _labels_as_numbers(call: MethodCall, place: Place, route: str) -> tuple[dict[str, Any], FitRecord]:
    """What is fitted to, and what is kept: labels that do not lie with X go there as numbers from 0 on."""
    given, y = dict(call.given), call.y
    if isinstance(given.get("sample_weight"), Number):  # one for all rows
        given["sample_weight"] = np.full(call.X.shape[0], float(given["sample_weight"]))
    state = FitRecord(route, labels_place(y), place=x_place(call.X))
    if is_regressor(call.estimator) and not container_kind(y) and np.asarray(y).dtype.kind not in "biufc":
        raise Unsupported("y holds no numbers")  # or objects, which may be numbers: scikit-learn reads them
    # No library sorts bools: they are labels like texts.
    with_X = state.labels is not None and place.is_same(container_place(y)) and dtype_kind(y) != "b"
    if y is None or not is_classifier(call.estimator) or with_X:
        return given, state
    if call.name == "partial_fit":
        raise Unsupported("labels that are bools, or do not lie with X, cannot be learnt in parts")
    host = np.asarray(container_to_host(y))
    if host.ndim != 1:
        return given, state
    if isinstance(getattr(call.estimator, "class_weight", None), dict):
        raise Unsupported("its class_weight is by labels that do not lie with X")
    check_classification_targets(host)
    state.classes, given["y"] = np.unique(host, return_inverse=True)
    return given, state


def _all_brought(call: MethodCall, given: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Arguments where the computation is."""
    brought = {name: _brought(value, name, place) for name, value in given.items()}
    if not _holds(call.estimator):  # whose parts may take them
        for what in ("X", "y"):
            refuse_complex(call.estimator, call.name, brought.get(what), what)
    return brought


def _brought(value: Any, name: str, place: Place) -> Any:
    """An argument where the computation is: data and whatever lies on a device; options stay as they are."""
    if value is None or not (name in _WITH_X or container_kind(value)):
        return value
    if is_array(value) and place.is_same(container_place(value)):
        return value
    if name == "y" and _no_numbers(value):
        return value  # texts, of a transformer that does not read them
    return place.as_array(value)


def _as_array(value: Any, place: Place) -> Any:
    """An array where it lies; what is none becomes one of NumPy, a frame of a device one of its place."""
    if value is None or is_array(value):
        return value
    return place.as_array(value) if container_kind(value) else np.asarray(value)


def _no_numbers(y: Any) -> bool:
    return of_texts(y) or (container_kind(y) is None and np.asarray(y).dtype.kind not in "biufc")


def _floating(value: Any) -> Any:
    """X of integers or bools in the floats that scikit-learn makes of them where NumPy multiplies them."""
    if not is_array(value) or dtype_kind(value) not in "biu":
        return value
    return array_namespace(value).astype(value, float_dtype(value))


def _of_one_dtype(estimator: Any, X: Any) -> tuple[Any, Any]:
    """An estimator and X as NumPy would promote them: the wider of both floats, for products of both."""
    factor = next(
        (vars(estimator)[name] for name in _FACTORS if container_kind(vars(estimator).get(name))), None
    )
    if factor is None or not dtype_kind(X) == dtype_kind(factor) == "f" or X.dtype == factor.dtype:
        return estimator, X
    xp = array_namespace(X)
    widest = np.promote_types(numpy_dtype(X), numpy_dtype(factor))
    dtype = X.dtype if widest == numpy_dtype(X) else factor.dtype
    other = _shallow(estimator)
    for name, value in vars(estimator).items():
        if container_kind(value) == "array" and dtype_kind(value) == "f":
            setattr(other, name, xp.astype(value, dtype, copy=False))
    return other, xp.astype(X, dtype, copy=False)


def _fitted(call: MethodCall, state: FitRecord) -> None:
    setattr(call.estimator, STATE, state)
    if state.classes is not None:
        call.estimator.classes_ = with_labels(state.classes, state, call.place)
