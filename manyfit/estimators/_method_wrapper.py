"""The wrapper of drop-in methods: it sends a call to a backend for the data's device, or to the host."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manyfit.arrays import (
    container_kind,
    container_place,
    container_to_host,
    dtype_kind,
    is_array,
    label_transfers,
    warn_host_fallback,
)
from manyfit.estimators._array_parameters import has_device_params
from manyfit.estimators._method_call import (
    FITS,
    RECORD,
    FitRecord,
    MethodCall,
    bypasses_wrapper,
    portable_label_place,
    portable_place,
)
from manyfit.estimators.backends import _cuml, array_api
from manyfit.estimators.backends.selection import backends_of
from manyfit.estimators.chunks.methods import in_chunks
from manyfit.exceptions import Unsupported
from manyfit.folds import may_be_in_chunks
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.metrics.functions.wrapper import FUNCTIONS
from manyfit.metrics.scoring.glm_score import explained_power


def wrap_method(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    """scikit-learn's method `inner` for data on any device, with its signature and text.

    `inner` alone is called, at once, if all data are the host's own and were so at the fit.
    """
    fits = name in FITS

    @functools.wraps(inner)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get("X")
        if may_be_in_chunks(X) and (found := in_chunks(self, name, inner, args, kwargs)) is not None:
            return found[0]
        on_host = not any(container_kind(value) is not None for value in (*args, *kwargs.values()))
        if on_host and RECORD not in vars(self) and not (fits and has_device_params(self)):
            return inner(self, *args, **kwargs)
        if bypasses_wrapper(self):
            return inner(self, *args, **kwargs)
        try:
            call = MethodCall(self, name, inner, args, kwargs)
        except TypeError:  # wrong arguments: Python's error names scikit-learn's method
            return inner(self, *args, **kwargs)
        with label_transfers(f"{name} of {type(self).__name__}"):
            return _fit(call) if call.fits else _run_method(call)

    return method


# Fits


def _fit(call: MethodCall) -> Any:
    record = call.record
    continues = call.name == "partial_fit"
    if not call.uses_device and not (continues and record is not None and record.route != "host"):
        # After a fit on a device.
        if not continues:
            array_api.move_attributes_to_host(call.estimator)
        return call.run_on_host()
    if call.place is None and not (record and continues):
        # Only y or the weights are on a device; the fit follows X.
        return _fall_back(call, ["it was fitted on the host"])
    if continues and (record is not None or _is_fitted(call.estimator)):
        return _continue_partial_fit(call)
    return _fit_on_device(call)


def _fit_on_device(call: MethodCall) -> Any:
    """Fit by the first backend that takes the estimator and its data; on the host if there is none."""
    estimator, place, reasons = call.estimator, call.place, []
    assert place is not None
    n_targets = call.y.shape[1] if getattr(call.y, "ndim", 1) == 2 else 1
    for _, backend in backends_of(estimator, place):
        try:
            return backend(n_targets)(call)
        except Unsupported as reason:
            reasons.append(str(reason))
    return _fall_back(call, reasons)


def _continue_partial_fit(call: MethodCall) -> Any:
    """Continue with the backend of the first partial fit."""
    record = call.record or FitRecord("host")
    if record.route == "host":
        return _fall_back(call, [record.reason])
    try:
        return _cuml.fit(call, record.model) if record.route == "cuml" else array_api.run_method(call, record)
    except Unsupported as error:
        if record.route != "cuml":
            return _fall_back(call, [str(error)])
        # The host does not have what cuML learnt.
        raise ValueError(
            f"{type(call.estimator).__name__}.partial_fit cannot continue a fit by cuML: {error}"
        ) from error


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


# Other methods


def _run_method(call: MethodCall) -> Any:
    record = call.record
    if record is None:
        return _run_without_record(call)
    try:
        if call.name == "score" and record.route != "host":
            score = _score(call)
            if score is not None:
                return score
        if record.route == "cuml":
            return _cuml.run_method(call, record)
        if record.route in ("own", "scikit-learn"):
            return array_api.run_method(call, record)
    except Unsupported as reason:
        cuml = record.route == "cuml"
        estimator = call.estimator
        on_host = _cuml.convert_to_sklearn(estimator, record) if cuml else array_api.copy_to_host(estimator)
        return _fall_back(call, [str(reason)], on_host)
    return _fall_back(call, [record.reason])


def _run_without_record(call: MethodCall) -> Any:
    """Run a method, on data on a device, of an estimator that was fitted to host data or not at all."""
    if call.place is None:
        return call.place_result(call.run_on_host())
    if get_tags(call.estimator).requires_fit:
        check_is_fitted(call.estimator)
        return _fall_back(call, ["it was fitted on the host"])
    try:
        array_api.require_dispatch(call.estimator, call.place)
        return array_api.run_method(call, FitRecord("scikit-learn"))
    except Unsupported as error:
        return _fall_back(call, [str(error)])


def _fall_back(call: MethodCall, reasons: list[str], estimator: Any = None) -> Any:
    """Run the method on host copies of all data, with a warning, and move the result to its place."""
    reason = "; ".join(dict.fromkeys(reasons))
    if call.uses_device and not (call.place is None or call.place.on_host):
        cls = type(call.estimator)
        warn_host_fallback(cls, f"{cls.__name__} works on the host, so its data are copied there: {reason}.")
    if call.fits and call.name != "partial_fit":
        array_api.move_attributes_to_host(call.estimator)
    result = call.run_on_host(estimator)
    if call.fits:
        record = FitRecord("host", portable_label_place(call.y), place=portable_place(call.X), reason=reason)
        setattr(call.estimator, RECORD, record)
    return call.place_result(result)


# Scores on a device


def _score(call: MethodCall) -> float | None:
    """The score as a metric of targets and predictions; None if scikit-learn's ``score`` is no such metric.

    Unsupported if the explained deviance is NaN: the metric refuses targets that scikit-learn may accept.
    """
    score = getattr(sklearn_class_of(type(call.estimator)), "score", None)
    power = explained_power(call.estimator)
    if score is ClassifierMixin.score:
        metric = FUNCTIONS["accuracy_score"]
    elif score is RegressorMixin.score:
        metric = FUNCTIONS["r2_score"]
    elif power is not None:
        metric = functools.partial(FUNCTIONS["d2_tweedie_score"], power=power)
    else:
        return None
    predicted = call.estimator.predict(call.X)
    found = _score_on_device(predicted, call, metric)
    if not math.isnan(found):
        return found
    if power is not None:
        raise Unsupported("the deviance of these targets is not a number")
    # scikit-learn raises or warns.
    y, predicted, weight = map(container_to_host, (call.y, predicted, call.given.get("sample_weight")))
    return float(metric(y, predicted, sample_weight=weight))


def _score_on_device(predicted: Any, call: MethodCall, metric: Callable[..., Any]) -> float:
    """A metric on a device; NaN without device arrays, for text and complex numbers, and if it is refused."""
    y, weight = call.y, call.given.get("sample_weight")
    place = container_place(predicted) or container_place(y)
    kind = np.asarray(y).dtype.kind if container_kind(y) is None else dtype_kind(y) if is_array(y) else "f"
    if place is None or place.kind != "array" or kind in "OUSc":
        return math.nan
    arrays = [None if one is None else place.as_array(one) for one in (y, predicted, weight)]
    try:
        return float(metric(*arrays[:2], sample_weight=arrays[2]))
    except (ValueError, TypeError, ArithmeticError, AttributeError, RuntimeError):
        return math.nan  # scikit-learn explains it, on the host
