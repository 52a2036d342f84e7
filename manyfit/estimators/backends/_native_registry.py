"""The registry of manyfit's own fits of single estimators, for arrays of any namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fitter:
    """The functions that fit a drop-in estimator where its data lie."""

    # ``fit(estimator, X, y, sample_weight)`` sets the fitted attributes with scikit-learn's names and shapes
    # (``n_features_in_`` too) as arrays on X's device, or raises `Unsupported` before it sets any. y and
    # weights may lie on any device; labels that do not lie with X are numbers from 0 on.
    fit: Callable[[Any, Any, Any, Any], None]
    # ``check(estimator)`` raises `Unsupported` if the parameters alone, when a search is planned, tell that
    # the estimator is not fitted.
    check: Callable[[Any], object]
    # Other methods, called with the estimator and the method's arguments in place of scikit-learn's own.
    methods: Mapping[str, Callable[..., Any]]


_fitters: dict[type, Fitter] = {}


def register_fitter(
    sklearn_class: type,
    fit: Callable[[Any, Any, Any, Any], None],
    check: Callable[[Any], object] = lambda estimator: None,
    **methods: Callable[..., Any],
) -> Fitter:
    """Let manyfit fit the drop-in estimator of a class to arrays that are not NumPy's; see `Fitter`."""
    fitter = _fitters[sklearn_class] = Fitter(fit, check, methods)
    return fitter


def fitter_of(sklearn_class: type) -> Fitter | None:
    """The fitter of scikit-learn's class, or None."""
    return _fitters.get(sklearn_class)
