"""Fits of our own of single estimators, on arrays of any namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fitter:
    """What fits a drop-in estimator where its data lie.

    Attributes
    ----------
    fit : callable
        ``fit(estimator, X, y, sample_weight)``: sets the fitted attributes of scikit-learn's names and
        shapes, arrays of X's namespace on its device, ``n_features_in_`` among them; or raises `Unsupported`
        with the reason before it sets any. y and weights are arrays of any place, so that what is read on the
        host does not cross for nothing; labels that do not lie with X come as numbers from 0 on.
    check : callable
        ``check(estimator)`` raises `Unsupported` with the reason why it is not fitted, as far as parameters
        tell: before data are there, when a search is planned.
    methods : mapping of str to callable
        Other methods, called with the estimator and the method's arguments, in place of scikit-learn's own
        under its array API dispatch.
    """

    fit: Callable[[Any, Any, Any, Any], None]
    check: Callable[[Any], object]
    methods: Mapping[str, Callable[..., Any]]


_fitters: dict[type, Fitter] = {}


def register_fitter(
    twin: type,
    fit: Callable[[Any, Any, Any, Any], None],
    check: Callable[[Any], object] = lambda estimator: None,
    **methods: Callable[..., Any],
) -> Fitter:
    """Let a drop-in estimator be fitted by ours to arrays that are not NumPy's; see `Fitter`."""
    fitter = _fitters[twin] = Fitter(fit, check, methods)
    return fitter


def unregister_fitter(fitter: Fitter) -> None:
    """Take a fitter back."""
    for twin in [twin for twin, known in _fitters.items() if known is fitter]:
        del _fitters[twin]


def fitter_of(twin: type) -> Fitter | None:
    """The fitter of scikit-learn's class, if there is one."""
    return _fitters.get(twin)
