"""Who works on the data of a drop-in estimator: ours, cuML, or scikit-learn, on the device or at home."""

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

from manyfit._drop_in_classes import sklearn_class_of
from manyfit.arrays import (
    container_kind,
    container_place,
    container_to_host,
    dtype_kind,
    is_array,
    label_transfers,
    warn_host_fallback,
)
from manyfit.estimators._array_parameters import any_param_away
from manyfit.estimators._method_call import (
    FITS,
    STATE,
    FitRecord,
    MethodCall,
    is_inside,
    labels_place,
    x_place,
)
from manyfit.estimators.backends import _cuml as _with_cuml
from manyfit.estimators.backends import array_api as _there
from manyfit.estimators.backends.choice import routes_of
from manyfit.folds import Unsupported
from manyfit.metrics.functions.wrapper import FUNCTIONS
from manyfit.metrics.scoring.glm_score import explained_power


def wrap_methods(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    """scikit-learn's method, for data that lie anywhere.

    Parameters
    ----------
    name : str
        Name of the method.
    inner : callable
        scikit-learn's own function. It is called at once, and only it, where all data are the host's own and
        were so at the fit.

    Returns
    -------
    callable
        With its signature and text.
    """

    fits = name in FITS

    @functools.wraps(inner)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        here = not _any_form(args) and not (kwargs and _any_form(kwargs.values()))
        if here and STATE not in vars(self) and not (fits and any_param_away(self)):
            return inner(self, *args, **kwargs)
        if is_inside(self):
            return inner(self, *args, **kwargs)
        try:
            call = MethodCall(self, name, inner, args, kwargs)
        except TypeError:  # arguments that it does not take: Python says so of scikit-learn's
            return inner(self, *args, **kwargs)
        with label_transfers(f"{name} of {type(self).__name__}"):
            return _answer(call)

    return method


def _any_form(values: Any) -> bool:
    return any(container_kind(value) is not None for value in values)


def _answer(call: MethodCall) -> Any:
    if call.fits:
        return _fit(call)
    state = call.state
    if state is None:
        return _ask_unfitted(call)
    try:
        if call.name == "score" and state.route != "host":
            metric = _score_of(call)
            if metric is not None:
                return metric(call)
        if state.route == "cuml":
            return _with_cuml.ask(call, state)
        if state.route in ("own", "scikit-learn"):
            return _there.ask(call, state)
    except Unsupported as reason:
        return _at_home(call, [str(reason)], _home_copy(call.estimator, state))
    return _at_home(call, [state.reason])


# Fits


def _fit(call: MethodCall) -> Any:
    if not call.foreign:  # after a fit on a device
        state = call.state
        if call.name != "partial_fit" or state is None or state.route == "host":
            if call.name != "partial_fit":
                _there.come_home(call.estimator)
            return call.at_home()
    if call.place is None and not (call.state and call.name == "partial_fit"):
        # Only y or weights lie elsewhere; the fit is where X is.
        return _at_home(call, ["it was fitted on the host"])
    if call.name == "partial_fit" and (call.state is not None or _is_fitted(call.estimator)):
        return _go_on(call)
    return _fit_there(call)


def _fit_there(call: MethodCall) -> Any:
    """By the first who takes the estimator and its data; else on the host."""
    estimator, place, reasons = call.estimator, call.place, []
    assert place is not None
    columns = call.y.shape[1] if getattr(call.y, "ndim", 1) == 2 else 1
    for route in routes_of(estimator, place):
        try:
            return route(estimator, place, columns)(call)
        except Unsupported as reason:
            reasons.append(str(reason))
    return _at_home(call, reasons)


def _go_on(call: MethodCall) -> Any:
    """Learn more, where it was begun."""
    state = call.state or FitRecord("host")
    if state.route == "host":
        return _at_home(call, [state.reason])
    try:
        return _with_cuml.fit(call, state.model) if state.route == "cuml" else _there.ask(call, state)
    except Unsupported as error:
        if state.route != "cuml":
            return _at_home(call, [str(error)])
        # The host knows nothing of what was learnt.
        raise ValueError(f"{type(call.estimator).__name__} cannot go on: {error}") from error


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


# Fitted estimators


def _ask_unfitted(call: MethodCall) -> Any:
    """A method of what was fitted to the host's own data, or not at all, with data that lie elsewhere."""
    if call.place is None:
        return call.settle(call.at_home())
    if get_tags(call.estimator).requires_fit:
        check_is_fitted(call.estimator)
        return _at_home(call, ["it was fitted on the host"])
    dispatch = _there.dispatch_of(call.estimator)
    place = call.place
    if dispatch is None or place.kind != "array" or place.library not in _there.DISPATCHED:
        return _at_home(call, ["scikit-learn works on it on the host only"])
    try:
        reason = dispatch.refuses(call.estimator)
        return _at_home(call, [reason]) if reason else _there.ask(call, FitRecord("scikit-learn"))
    except Unsupported as error:
        return _at_home(call, [str(error)])


def _home_copy(estimator: Any, state: FitRecord) -> Any:
    return _with_cuml.at_home(estimator, state) if state.route == "cuml" else _there.at_home(estimator)


def _score_of(call: MethodCall) -> Callable[[MethodCall], float] | None:
    """The score as a function of the predictions, where scikit-learn's is one."""
    score = getattr(sklearn_class_of(type(call.estimator)), "score", None)
    if score is ClassifierMixin.score:
        return functools.partial(_score, metric=FUNCTIONS["accuracy_score"])
    if score is RegressorMixin.score:
        return functools.partial(_score, metric=FUNCTIONS["r2_score"])
    power = explained_power(call.estimator)
    if power is None:
        return None
    return functools.partial(_explained, metric=functools.partial(FUNCTIONS["d2_tweedie_score"], power=power))


def _explained(call: MethodCall, metric: Callable[..., Any]) -> float:
    """The deviance that is explained, where that is a number.

    Raises
    ------
    Unsupported
        If the metric refuses what scikit-learn's method may not.
    """
    score = _number(call.estimator.predict(call.X), call, metric)
    if math.isnan(score):
        raise Unsupported("the deviance of these targets is not a number")
    return score


def _score(call: MethodCall, metric: Callable[..., Any]) -> float:
    """A metric of targets and predictions, on a device where one of them is there."""
    predicted = call.estimator.predict(call.X)
    score = _number(predicted, call, metric)
    if not math.isnan(score):
        return score
    # scikit-learn refuses it, or warns.
    weight = call.given.get("sample_weight")
    return float(
        metric(*map(container_to_host, (call.y, predicted)), sample_weight=container_to_host(weight))
    )


def _number(predicted: Any, call: MethodCall, metric: Callable[..., Any]) -> float:
    """A metric on a device; NaN where nothing is there, for texts and complex numbers, and if it refuses."""
    y, weight = call.y, call.given.get("sample_weight")
    place = container_place(predicted) or container_place(y)
    kind = np.asarray(y).dtype.kind if container_kind(y) is None else dtype_kind(y) if is_array(y) else "f"
    if place is None or place.kind != "array" or kind in "OUSc":
        return math.nan
    arrays = [None if one is None else place.as_array(one) for one in (y, predicted, weight)]
    try:
        return float(metric(*arrays[:2], sample_weight=arrays[2]))
    except (ValueError, TypeError, ArithmeticError, AttributeError, RuntimeError):
        return math.nan  # scikit-learn has words for it, on the host


# The host


def _at_home(call: MethodCall, reasons: list[str], estimator: Any = None) -> Any:
    """Bring all data to the host, work there, and bring the result back."""
    reason = "; ".join(dict.fromkeys(reasons))
    if call.foreign and not (call.place is None or call.place.on_host):
        cls = type(call.estimator)
        warn_host_fallback(cls, f"{cls.__name__} works on the host, to which its data are brought: {reason}.")
    if call.fits and call.name != "partial_fit":
        _there.come_home(call.estimator)
    result = call.at_home(estimator)
    if call.fits:
        state = FitRecord("host", labels_place(call.y), place=x_place(call.X), reason=reason)
        setattr(call.estimator, STATE, state)
    return call.settle(result)
