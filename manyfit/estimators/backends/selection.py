"""The backends that may fit a drop-in estimator where its data lie, for fits and for plans."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal

from manyfit.arrays import Place
from manyfit.estimators._catalog import CATALOG, Cuml
from manyfit.estimators._method_call import MethodCall, refuse_frame_output
from manyfit.estimators.backends import _cuml, array_api
from manyfit.estimators.backends._native_registry import fitter_of
from manyfit.exceptions import Unsupported
from manyfit.introspection.drop_in_classes import sklearn_class_of

# Fits a call, or raises `Unsupported` for a reason that only the data tell.
Fit = Callable[[MethodCall], Any]
# ``backend(estimator, place, n_targets)`` returns a `Fit`, or raises `Unsupported` with the reason.
Backend = Callable[[Any, Place, int], Fit]


def backends_of(estimator: Any, place: Place) -> Iterator[Backend]:
    """The backends that may fit an estimator to data of a place, the best first."""
    cuml = cuml_class_of(estimator) if place.library in _cuml.LIBRARIES else None
    if fitter_of(sklearn_class_of(type(estimator))) is not None and place.kind == "array":
        yield _native
    if cuml is not None and cuml.converts:
        yield functools.partial(_with_cuml, cuml=cuml)
    yield _with_dispatch
    if cuml is not None and not cuml.converts:
        yield functools.partial(_with_cuml, cuml=cuml)


def cuml_class_of(estimator: Any) -> Cuml | None:
    """cuML's class for an estimator; None for a user's subclass, which cuML does not know."""
    cls = type(estimator)
    line = CATALOG.get(cls.__name__) if sklearn_class_of(cls) is not cls else None
    return line.cuml if line else None


def find_fitting_place(
    estimator: Any, place: Place, n_targets: int = 1
) -> tuple[Literal["device", "host"], str]:
    """Say where and why an unfitted drop-in estimator would be fitted to X, as far as its parameters show.

    The reason names the backend that fits it on the device, or what each backend does not support.
    """
    if hasattr(estimator, "transform"):
        try:
            refuse_frame_output(estimator)
        except Unsupported as reason:
            return "host", str(reason)
    reasons = []
    for backend in backends_of(estimator, place):
        try:
            backend(estimator, place, n_targets)
        except Unsupported as reason:
            reasons.append(str(reason))
        else:
            return "device", _REASONS[getattr(backend, "func", backend)]
    return "host", "; ".join(dict.fromkeys(reasons))


def _native(estimator: Any, place: Place, n_targets: int) -> Fit:
    fitter = fitter_of(sklearn_class_of(type(estimator)))
    assert fitter is not None
    fitter.check(estimator)
    return array_api.fit_natively


def _with_dispatch(estimator: Any, place: Place, n_targets: int) -> Fit:
    reason = array_api.why_not_dispatched(estimator, place, n_targets)
    if reason is not None:
        raise Unsupported(reason)
    return array_api.fit_with_dispatch


def _with_cuml(estimator: Any, place: Place, n_targets: int, cuml: Cuml) -> Fit:
    return functools.partial(_cuml.fit, model=_cuml.make_model(estimator, cuml))


_REASONS: dict[Any, str] = {
    _native: "manyfit fits it",
    _with_dispatch: "scikit-learn's array API dispatch supports it",
    _with_cuml: "cuML fits it",
}
