"""The backends that may fit a drop-in estimator where its data lie, for fits and for plans."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

from manyfit.arrays import Place
from manyfit.estimators._catalog import CATALOG, Cuml
from manyfit.estimators._method_call import MethodCall, refuse_frame_output
from manyfit.estimators.backends import _cuml, array_api
from manyfit.estimators.backends._native_registry import Fitter, fitter_of
from manyfit.exceptions import Unsupported
from manyfit.introspection.class_names import sklearn_class_of

# Fits a call, or raises `Unsupported` for a reason that only the data tell.
Fit = Callable[[MethodCall], Any]
# What a plan says of a fit by a backend; and ``backend(n_targets)``, which returns a `Fit`, or raises
# `Unsupported` with the reason.
Backend = tuple[str, Callable[[int], Fit]]


def backends_of(estimator: Any, place: Place) -> list[Backend]:
    """The backends that may fit an estimator to data of a place, the best first."""
    dispatch = functools.partial(_with_dispatch, estimator, place)
    found: list[Backend] = [("scikit-learn's array API dispatch supports it", dispatch)]
    cls = type(estimator)
    # cuML does not know a user's subclass.
    line = CATALOG.get(cls.__name__) if sklearn_class_of(cls) is not cls else None
    cuml = line.cuml if line is not None and place.library in _cuml.LIBRARIES else None
    if cuml is not None:
        by_cuml = "cuML fits it", functools.partial(_with_cuml, estimator, cuml)
        found.insert(0 if cuml.converts else 1, by_cuml)
    fitter = fitter_of(sklearn_class_of(cls))
    if fitter is not None and place.kind == "array":
        found.insert(0, ("manyfit fits it", functools.partial(_native, estimator, fitter)))
    return found


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
    for says, backend in backends_of(estimator, place):
        try:
            backend(n_targets)
        except Unsupported as reason:
            reasons.append(str(reason))
        else:
            return "device", says
    return "host", "; ".join(dict.fromkeys(reasons))


def _native(estimator: Any, fitter: Fitter, n_targets: int) -> Fit:
    fitter.check(estimator)
    return array_api.fit_natively


def _with_dispatch(estimator: Any, place: Place, n_targets: int) -> Fit:
    array_api.require_dispatch(estimator, place, n_targets)
    return array_api.fit_with_dispatch


def _with_cuml(estimator: Any, cuml: Cuml, n_targets: int) -> Fit:
    return functools.partial(_cuml.fit, model=_cuml.make_model(estimator, cuml))
