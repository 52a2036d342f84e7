"""Who may fit a drop-in estimator where its data lie: one list, by which fits go and plans explain."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal

from manyfit._compat import output_container
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.arrays import Place
from manyfit.estimators._catalog import ALL, Cuml
from manyfit.estimators._method_call import MethodCall
from manyfit.estimators.backends import _cuml as _with_cuml
from manyfit.estimators.backends import array_api as _there
from manyfit.estimators.backends._native_registry import fitter_of
from manyfit.folds import Unsupported

# Fits a call, or raises `Unsupported` with the reason that only data tell.
Fit = Callable[[MethodCall], Any]
# ``route(estimator, place, n_targets)`` gives who fits, or raises `Unsupported` with the reason.
Route = Callable[[Any, Place, int], Fit]


def routes_of(estimator: Any, place: Place) -> Iterator[Route]:
    """Those who may fit an estimator to data of a place, the best first."""
    cuml = cuml_of(estimator) if place.library in _with_cuml.LIBRARIES else None
    if fitter_of(sklearn_class_of(type(estimator))) is not None and place.kind == "array":
        yield _by_ours
    if cuml is not None and cuml.converts:
        yield functools.partial(_by_cuml, cuml=cuml)
    yield _by_dispatch
    if cuml is not None and not cuml.converts:
        yield functools.partial(_by_cuml, cuml=cuml)


def cuml_of(estimator: Any) -> Cuml | None:
    """The class of cuML's for an estimator; none for a user's subclass, of which cuML knows nothing."""
    cls = type(estimator)
    export = ALL.get(cls.__name__) if sklearn_class_of(cls) is not cls else None
    return export.cuml if export else None


def find_fitting_place(
    estimator: Any, place: Place, n_targets: int = 1
) -> tuple[Literal["device", "host"], str]:
    """Where a drop-in estimator is fitted to arrays of a place, and why, as far as can be told before.

    Parameters
    ----------
    estimator : estimator
        One of `manyfit.estimators`, unfitted.
    place : Place
        Where X will lie.
    n_targets : int, default=1
        Columns of y.

    Returns
    -------
    where : {"device", "host"}
        The device if one of those who work on it takes the estimator.
    reason : str
        Who fits it on the device; or what each of those who work on it says.
    """
    if hasattr(estimator, "transform") and output_container(estimator) != "default":
        return "host", f"its output is to be a frame of {output_container(estimator)}"
    reasons = []
    for route in routes_of(estimator, place):
        try:
            route(estimator, place, n_targets)
        except Unsupported as reason:
            reasons.append(str(reason))
        else:
            return "device", _FITTED_BY[getattr(route, "func", route)]
    return "host", "; ".join(dict.fromkeys(reasons))


def _by_ours(estimator: Any, place: Place, n_targets: int) -> Fit:
    fitter = fitter_of(sklearn_class_of(type(estimator)))
    assert fitter is not None
    fitter.check(estimator)
    return _there.fit_by_ours


def _by_dispatch(estimator: Any, place: Place, n_targets: int) -> Fit:
    reason = _there.why_no_dispatch(estimator, place, n_targets)
    if reason is not None:
        raise Unsupported(reason)
    return _there.fit_by_dispatch


def _by_cuml(estimator: Any, place: Place, n_targets: int, cuml: Cuml) -> Fit:
    return functools.partial(_with_cuml.fit, model=_with_cuml.made(estimator, cuml))


_FITTED_BY: dict[Any, str] = {
    _by_ours: "manyfit fits it",
    _by_dispatch: "scikit-learn's array API dispatch serves it",
    _by_cuml: "cuML fits it",
}
