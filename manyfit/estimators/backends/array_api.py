"""Fits and methods on device arrays: by scikit-learn's array API dispatch or by manyfit's own fitters."""

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

from manyfit._compat import array_api_dispatch, has_glm_loss, set_glm_loss
from manyfit.arrays import (
    Place,
    array_namespace,
    container_kind,
    container_place,
    container_to_host,
    dtype_kind,
    float_dtype,
    is_array,
    is_xp_array,
    numpy_dtype,
    refuse_complex,
)
from manyfit.estimators._array_parameters import shallow_copy
from manyfit.estimators._catalog import CATALOG, Dispatch
from manyfit.estimators._method_call import (
    RECORD,
    FitRecord,
    MethodCall,
    clear_fit,
    is_text_frame,
    place_labels,
    portable_label_place,
    portable_place,
    refuse_frame_output,
)
from manyfit.estimators.backends._native_registry import fitter_of
from manyfit.exceptions import Unsupported
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.composites import last_step

# Libraries whose arrays scikit-learn supports.
DISPATCHED = ("array_api_strict", "cupy", "torch", "dpnp")
# Arguments with a value for each row, or compared with y.
_DATA = ("X", "y", "sample_weight", "classes")
# Attributes that are multiplied with rows, which a library may refuse if their dtypes differ.
_FACTORS = ("coef_", "components_", "scalings_")


def require_dispatch(estimator: Any, place: Place, n_targets: int = 1) -> None:
    """Raise Unsupported if scikit-learn does not work with an estimator on arrays where they lie."""
    dispatch = dispatch_of(estimator)
    if dispatch is None:
        raise Unsupported("scikit-learn supports it on the host only")
    if place.kind != "array":
        raise Unsupported(f"scikit-learn does not support a {place.library} {place.kind}")
    if place.library not in DISPATCHED:
        raise Unsupported(f"scikit-learn does not support arrays of {place.library}")
    if reason := dispatch.refuses(estimator, n_targets):
        raise Unsupported(reason)


def fit_with_dispatch(call: MethodCall) -> Any:
    """Fit by scikit-learn on the device of X; Unsupported if it does not support these data on it."""
    place = call.place
    assert place is not None and place.kind == "array"
    _check_output(call)
    given, record = _encode_labels(call, place, "scikit-learn")
    if getattr(call.estimator, "warm_start", False) and not place.is_same(attributes_place(call.estimator)):
        clear_fit(call.estimator)  # a warm start would read attributes of another device
    # An estimator that does not read y hands it on as the same object, and its parts move it.
    reads_y = get_tags(call.estimator).target_tags.required
    unread = {} if reads_y or "y" not in given else {"y": given.pop("y")}
    given = _move_arguments(call, given, place) | unread
    dispatch = dispatch_of(call.estimator)
    if dispatch is not None and dispatch.check is not None:
        dispatch.check(call.estimator, given["X"], given.get("sample_weight"))
    with _dispatching(call.estimator, given):
        result = call.run(lambda name, _: given[name], move=_mover(place))
    _set_record(call, record)
    return result


def fit_natively(call: MethodCall) -> Any:
    """Fit by one of manyfit's own fitters; Unsupported if it does not support these data."""
    place, fitter = call.place, fitter_of(sklearn_class_of(type(call.estimator)))
    assert place is not None and fitter is not None
    others = set(call.given) - {"X", "y", "sample_weight"}
    if call.name not in ("fit", "fit_transform") or others:
        raise Unsupported("manyfit has no fit of its own for it")
    _check_output(call)
    given, record = _encode_labels(call, place, "own")
    parts = [_as_array(given.get(name), place) for name in ("y", "sample_weight")]
    fresh = type(call.estimator)(**call.estimator.get_params(deep=False))
    fitter.fit(fresh, _move_arguments(call, {"X": given["X"]}, place)["X"], *parts)
    clear_fit(call.estimator)
    vars(call.estimator).update(vars(fresh))
    _set_record(call, record)
    return call.estimator if call.name == "fit" else call.estimator.transform(call.X)


def run_method(call: MethodCall, record: FitRecord) -> Any:
    """Run a method where the fitted attributes lie, on data of any place."""
    estimator = call.estimator
    place = attributes_place(estimator) or call.place
    if place is None or scipy.sparse.issparse(call.X):
        return call.place_result(call.run_on_host(copy_to_host(estimator)))
    _check_output(call)
    if record.classes is None:
        return call.place_result(_run(call, place, record, estimator))
    classes = place.as_array(np.arange(len(record.classes)))
    result = _run(call, place, record, shallow_copy(estimator, {"classes_": classes}))
    if call.predicts_labels:
        result = record.classes[container_to_host(result)]
    return call.place_result(result)


def _run(call: MethodCall, place: Place, record: FitRecord, estimator: Any) -> Any:
    fitter = fitter_of(sklearn_class_of(type(call.estimator))) if record.route == "own" else None
    method = fitter.methods.get(call.name) if fitter is not None else None
    given = _move_arguments(call, _without_known_classes(call), place)
    if method is not None:
        return method(estimator, **given)
    with _dispatching(estimator, given):
        if "X" in given:
            estimator, given["X"] = _with_common_dtype(estimator, given["X"])
        return call.run(lambda name, _: given[name], estimator, _mover(place))


def _without_known_classes(call: MethodCall) -> dict[str, Any]:
    """The arguments without classes that the estimator has: scikit-learn would compare them on the host."""
    given, known = dict(call.given), vars(call.estimator).get("classes_")
    if known is None or given.get("classes") is None:
        return given
    if np.array_equal(np.unique(container_to_host(given["classes"])), container_to_host(known)):
        given["classes"] = None
    return given


@contextmanager
def _dispatching(estimator: Any, given: dict[str, Any]) -> Iterator[None]:
    """Run scikit-learn on the device, with X as floats; a meta-estimator hands its X on as it is."""
    is_meta = _is_meta_estimator(estimator)
    if not is_meta and "X" in given:
        given["X"] = _as_float(given["X"])
    # Other processes lack the device, and other threads the dispatch.
    with array_api_dispatch(), parallel_config("sequential") if is_meta else nullcontext():
        yield


def _mover(place: Place) -> Callable[[Any], Any]:
    """A function that moves arrays to a place."""
    return lambda value: value if place.is_same(container_place(value)) else place.as_array(value)


def _is_meta_estimator(estimator: Any) -> bool:
    dispatch = dispatch_of(estimator)
    return dispatch is not None and dispatch.holds


def attributes_place(estimator: Any) -> Place | None:
    """The place of the fitted attributes; None for the host, or if no attribute is an array.

    Labels, which follow y, and parameters, which the user sets, do not count.
    """
    for name, value in vars(estimator).items():
        fitted = name[-1] == "_" or name[0] == "_"
        if fitted and name != "classes_" and container_kind(value):
            return container_place(value)
    return None


def move_attributes_to_host(estimator: Any) -> None:
    """Prepare an estimator for a fit on the host; a warm start reads the attributes of the fit before."""
    vars(estimator).pop(RECORD, None)
    if getattr(estimator, "warm_start", False):
        vars(estimator).update({name: container_to_host(value) for name, value in vars(estimator).items()})


def copy_to_host(estimator: Any) -> Any:
    """A copy of a fitted estimator with its attributes on the host, as after a fit by scikit-learn."""
    attributes = vars(estimator).items()
    copied = shallow_copy(estimator, {name: container_to_host(one) for name, one in attributes})
    vars(copied).pop(RECORD, None)
    if has_glm_loss(copied):
        set_glm_loss(copied)  # the loss of a fit with dispatch holds the device's library
    return copied


def predicts_device_labels(estimator: Any) -> bool:
    """Whether labels that a fitted estimator, or a pipeline, predicts go to another place than the host."""
    record: FitRecord | None = getattr(last_step(estimator), "__dict__", {}).get(RECORD)
    return record is not None and record.labels is not None


def predict_host_labels(estimator: Any) -> Any:
    """A fitted estimator, or a pipeline that ends in one, that predicts labels on the host for scorers."""
    if isinstance(estimator, Pipeline):
        *before, (name, last) = estimator.steps
        return shallow_copy(estimator, {"steps": [*before, (name, predict_host_labels(last))]})
    record: FitRecord | None = getattr(estimator, "__dict__", {}).get(RECORD)
    if record is None or record.labels is None:
        return estimator
    classes = vars(estimator).get("classes_")
    if not container_kind(classes):
        return shallow_copy(estimator, {RECORD: replace(record, labels=None)})
    classes = container_to_host(classes)
    encoded = record.route in ("own", "scikit-learn") and record.classes is None
    known = classes if encoded else record.classes
    return shallow_copy(estimator, {"classes_": classes, RECORD: replace(record, labels=None, classes=known)})


def dispatch_of(estimator: Any) -> Dispatch | None:
    """The catalog's entry on dispatch for a drop-in estimator, or for a user's subclass of one."""
    for cls in type(estimator).__mro__:
        if cls.__module__ == "manyfit.estimators" and cls.__name__ in CATALOG:
            return CATALOG[cls.__name__].dispatch
    return None


def why_not_with(estimator: Any, params: Mapping[str, Any]) -> str | None:
    """Why scikit-learn's own class is not fitted on a device with these parameters, or None.

    Its tag does not tell: `Ridge` and `LinearDiscriminantAnalysis` have one solver there.
    """
    cls = type(estimator)
    known = CATALOG.get(cls.__name__) if cls.__module__.startswith("sklearn.") else None
    if known is None or known.dispatch is None:
        return None
    return known.dispatch.refuses_params({**vars(estimator), **params})


def _check_output(call: MethodCall) -> None:
    # A meta-estimator transforms during its fit.
    if call.name in ("transform", "fit_transform") or _is_meta_estimator(call.estimator):
        refuse_frame_output(call.estimator)


def _encode_labels(call: MethodCall, place: Place, route: str) -> tuple[dict[str, Any], FitRecord]:
    """Arguments and record of a fit, in which labels on another device than X are numbers from 0 on."""
    given, y = dict(call.given), call.y
    if isinstance(given.get("sample_weight"), Number):  # one for all rows
        given["sample_weight"] = np.full(call.X.shape[0], float(given["sample_weight"]))
    record = FitRecord(route, portable_label_place(y), place=portable_place(call.X))
    if is_regressor(call.estimator) and not container_kind(y) and np.asarray(y).dtype.kind not in "biufc":
        raise Unsupported("y holds no numbers")  # or objects, which scikit-learn reads if they are numbers
    # No library sorts bools: they are encoded, as text is.
    with_X = record.labels is not None and place.is_same(container_place(y)) and dtype_kind(y) != "b"
    if y is None or not is_classifier(call.estimator) or with_X:
        return given, record
    if call.name == "partial_fit":
        raise Unsupported("partial_fit takes no labels that are bools or lie on another device than X")
    host = np.asarray(container_to_host(y))
    if host.ndim != 1:
        return given, record
    if isinstance(getattr(call.estimator, "class_weight", None), dict):
        raise Unsupported("its class_weight names labels that do not lie on X's device")
    check_classification_targets(host)
    record.classes, given["y"] = np.unique(host, return_inverse=True)
    return given, record


def _move_arguments(call: MethodCall, given: Mapping[str, Any], place: Place) -> dict[str, Any]:
    moved = {name: _move_argument(value, name, place) for name, value in given.items()}
    if not _is_meta_estimator(call.estimator):  # its parts may take complex numbers
        for what in ("X", "y"):
            refuse_complex(call.estimator, call.name, moved.get(what), what)
    return moved


def _move_argument(value: Any, name: str, place: Place) -> Any:
    """Move data, and anything on a device, to a place; options stay as they are."""
    if value is None or not (name in _DATA or container_kind(value)):
        return value
    if is_array(value) and place.is_same(container_place(value)):
        return value
    if name == "y" and _is_not_numeric(value):
        return value  # text, for a transformer that does not read y
    return place.as_array(value)


def _as_array(value: Any, place: Place) -> Any:
    """Arrays stay where they lie; a device frame becomes an array of the place, other data a NumPy array."""
    if value is None or is_array(value):
        return value
    return place.as_array(value) if container_kind(value) else np.asarray(value)


def _is_not_numeric(y: Any) -> bool:
    return is_text_frame(y) or (container_kind(y) is None and np.asarray(y).dtype.kind not in "biufc")


def _as_float(value: Any) -> Any:
    """X of integers or bools in the float dtype in which NumPy would multiply them."""
    if not is_array(value) or dtype_kind(value) not in "biu":
        return value
    return array_namespace(value).astype(value, float_dtype(value))


def _with_common_dtype(estimator: Any, X: Any) -> tuple[Any, Any]:
    """An estimator and X with the wider of their float dtypes, to which NumPy would promote them."""
    factor = next(
        (vars(estimator)[name] for name in _FACTORS if container_kind(vars(estimator).get(name))), None
    )
    if factor is None or not dtype_kind(X) == dtype_kind(factor) == "f" or X.dtype == factor.dtype:
        return estimator, X
    xp = array_namespace(X)
    widest = np.promote_types(numpy_dtype(X), numpy_dtype(factor))
    dtype = X.dtype if widest == numpy_dtype(X) else factor.dtype
    cast = {
        name: xp.astype(value, dtype, copy=False)
        for name, value in vars(estimator).items()
        if is_xp_array(value) and dtype_kind(value) == "f"
    }
    return shallow_copy(estimator, cast), xp.astype(X, dtype, copy=False)


def _set_record(call: MethodCall, record: FitRecord) -> None:
    setattr(call.estimator, RECORD, record)
    if record.classes is not None:
        call.estimator.classes_ = place_labels(record.classes, record, call.place)
