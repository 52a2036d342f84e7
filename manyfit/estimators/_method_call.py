"""One call of a method of a drop-in estimator with data that lie anywhere, and what a fit leaves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit.arrays import (
    Place,
    as_readable,
    container_kind,
    container_place,
    container_to_host,
    place_of,
    remember_host_copy,
    to_host_once,
    to_place,
)
from manyfit.estimators._array_parameters import any_param_away, params_moved

FITS = frozenset({"fit", "partial_fit", "fit_transform", "fit_predict"})
STATE = "_manyfit_fitted"
_running: ContextVar[Any] = ContextVar("manyfit_running", default=None)


@dataclass
class FitRecord:
    """How an estimator was fitted to data that were not the host's own; kept on it until it is fitted again.

    Attributes
    ----------
    route : {"own", "cuml", "scikit-learn", "host"}
        Who fitted it.
    labels : tuple of str or None
        The place of y, in words that another process understands, where labels go; None is the host.
    classes : ndarray or None
        Labels of which only the numbers went to the device: those of y lie elsewhere, or are strings.
    model : object
        Estimator of cuML's, which has the fitted attributes.
    place : tuple of str or None
        That of X, for methods that are asked without any.
    reason : str
        Why it was fitted on the host.
    """

    route: str
    labels: tuple[str, str] | None = None
    classes: Any = None
    model: Any = None
    place: tuple[str, str] | None = None
    reason: str = "it was fitted on the host"
    cache: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "cache": {}}


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


class MethodCall:
    """A call: the estimator, the name of the method, scikit-learn's own function, the arguments by name."""

    def __init__(self, estimator: Any, name: str, inner: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.estimator, self.name, self.inner = estimator, name, inner
        bound = _signature(inner).bind(estimator, *args, **kwargs)
        self._bound = bound
        _, *names = bound.arguments
        kinds = _signature(inner).parameters
        self._more = next((n for n in names if kinds[n].kind is inspect.Parameter.VAR_KEYWORD), None)
        given: dict[str, Any] = {n: bound.arguments[n] for n in names if n != self._more}
        given |= bound.arguments.get(self._more, {}) if self._more else {}
        self.given = {n: as_readable(value) for n, value in given.items()}
        self._names = names
        # That which rows are from: X in nearly all methods, but y of LabelEncoder's, raw_documents of texts.
        parameters = [n for n in kinds if n != next(iter(kinds))]
        self.leading = parameters[0] if parameters else ""

    @property
    def X(self) -> Any:
        """What the rows are read from; None for a method that takes none."""
        return self.given.get(self.leading)

    @property
    def y(self) -> Any:
        """The targets; None where there are none."""
        name = "Y" if "Y" in self.given else "y"  # that of estimators of several outputs
        return self.given.get(name) if self.leading != name else None

    @functools.cached_property
    def place(self) -> Place | None:
        """Where X lies; None for the host's own containers."""
        return container_place(self.X)

    @property
    def fits(self) -> bool:
        """Whether it fits the estimator."""
        return self.name in FITS

    @property
    def state(self) -> FitRecord | None:
        """How the estimator was fitted."""
        return vars(self.estimator).get(STATE)

    @property
    def foreign(self) -> bool:
        """Whether any argument is not the host's own, or a parameter that a fit reads."""
        given = any(container_kind(value) for value in self.given.values())
        return given or (self.fits and any_param_away(self.estimator))

    def run(
        self,
        change: Callable[[str, Any], Any],
        estimator: Any = None,
        move: Callable[[Any], Any] = container_to_host,
    ) -> Any:
        """Run scikit-learn's own method on arguments that `change` makes of (name, value).

        Parameters that are arrays on a device are where `move` brings them meanwhile.
        """
        estimator = self.estimator if estimator is None else estimator
        there = move is not container_to_host
        with params_moved(estimator, move, keep=self.fits, there=there) as moved:
            return self._run(change, moved)

    def _run(self, change: Callable[[str, Any], Any], estimator: Any) -> Any:
        given = {name: change(name, value) for name, value in self.given.items()}
        bound = inspect.BoundArguments(self._bound.signature, self._bound.arguments.copy())
        first = next(iter(bound.arguments))
        bound.arguments[first] = estimator
        for name in self._names:
            if name != self._more:
                bound.arguments[name] = given.pop(name)
        if self._more:
            bound.arguments[self._more] = given
        with inside(estimator):
            return self.inner(*bound.args, **bound.kwargs)

    def at_home(self, estimator: Any = None) -> Any:
        """Run scikit-learn's own method with all data on the host."""
        return self.run(lambda name, value: to_host_once(value), estimator)

    # Where results go

    @property
    def gives_labels(self) -> bool:
        """Whether the result is labels of a classifier."""
        return self.name == "predict" and is_classifier(self.estimator)

    def settle(self, result: Any) -> Any:
        """The result of a computation where it belongs: labels with y, all else with X."""
        if result is self.estimator or self.name == "score":
            return result
        if self.gives_labels and self.state is not None:
            return with_labels(result, self.state, self.place)
        place = self.place if self.X is not None else self._fitted_place
        if place is None:
            return _home(result)
        there = container_kind(result) is not None and place.is_same(container_place(result))
        if there:
            return result
        brought = place.move(result)
        remember_host_copy(brought, result)  # the next step may work on the host, too
        return brought

    @property
    def _fitted_place(self) -> Place | None:
        words = self.state.place if self.state is not None else None
        return None if words is None else container_place(to_place(np.empty(0), words))


def _home(result: Any) -> Any:
    if type(result) in (tuple, list):
        return type(result)(map(_home, result))
    return container_to_host(result)


def labels_place(y: Any) -> tuple[str, str] | None:
    """Where labels of y go: to y's library and kind of device; None, the host, for texts of a frame too."""
    return None if of_texts(y) else x_place(y)


def of_texts(y: Any) -> bool:
    """Whether it is a frame or series of a device that is not of numbers, so that no array there holds it."""
    return container_kind(y) == "frame" and getattr(getattr(y, "dtype", None), "kind", "O") not in "biuf"


def with_labels(labels: Any, state: FitRecord, place: Place | None) -> Any:
    """Labels where those of y lay: on X's device where it is one of that kind."""
    if type(labels) is list:
        return [with_labels(one, state, place) for one in labels]
    if container_kind(labels) and x_place(labels) == state.labels:
        return labels
    host = np.asarray(container_to_host(labels))
    if state.labels is None:
        return host
    if host.dtype.kind not in "biuf":
        return host
    if place is not None and place.kind == "array" and _words(place) == state.labels:
        return place.move(host)
    return to_place(host, state.labels)


def x_place(X: Any) -> tuple[str, str] | None:
    """The place of X, for another process; cuDF's frames are known by CuPy's arrays."""
    place = container_place(X)
    return None if place is None else _words(place)


def _words(place: Place) -> tuple[str, str]:
    return place_of(place.xp.empty(0, device=place.device))


@contextmanager
def inside(estimator: Any) -> Iterator[None]:
    """While a block runs, calls of the estimator's methods are scikit-learn's, whatever they are given."""
    token = _running.set(estimator)
    try:
        yield
    finally:
        _running.reset(token)


def is_inside(estimator: Any) -> bool:
    """Whether one of the estimator's methods calls another one."""
    return _running.get() is estimator


def forget(estimator: Any) -> None:
    """Take all that a fit left off an estimator."""
    configured: Mapping[str, Any] = vars(type(estimator)(**estimator.get_params(deep=False)))
    for name in set(vars(estimator)) - set(configured):
        if not name.startswith(("_sklearn", "_skl", "_metadata", "_parent")):
            delattr(estimator, name)
