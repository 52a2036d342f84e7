"""One call of a method of a drop-in estimator, and the record that a fit leaves on the estimator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit._compat import output_container
from manyfit._config import set_in_block
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
from manyfit.estimators._array_parameters import has_device_params, move_params
from manyfit.exceptions import Unsupported

FITS = frozenset({"fit", "partial_fit", "fit_transform", "fit_predict"})
RECORD = "_manyfit_fitted"
_bypassed: ContextVar[Any] = ContextVar("manyfit_bypassed_estimator", default=None)


@dataclass
class FitRecord:
    """How an estimator was fitted to data that are not the host's own; it stays until the next fit."""

    # The backend of the fit: "own", "cuml", "scikit-learn" for its dispatch, or "host" for scikit-learn.
    route: str
    # Portable place of y, to which predicted labels go; None for the host.
    labels: tuple[str, str] | None = None
    # Labels on the host if only their numbers went to the device: strings, or y on another device.
    classes: Any = None
    model: Any = None  # cuML's estimator, which has the fitted attributes
    place: tuple[str, str] | None = None  # portable place of X, for methods without X
    reason: str = "it was fitted on the host"
    cache: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "cache": {}}


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


class MethodCall:
    """An estimator, the name of a method, scikit-learn's own function, and the arguments by name."""

    def __init__(self, estimator: Any, name: str, inner: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.estimator, self.name, self.inner = estimator, name, inner
        given = _signature(inner).bind(estimator, *args, **kwargs).arguments
        itself, *names = kinds = _signature(inner).parameters
        del given[itself]
        for name in names:
            if kinds[name].kind is inspect.Parameter.VAR_KEYWORD:
                given |= given.pop(name, {})
        self.given = {name: as_readable(value) for name, value in given.items()}
        # The argument with the rows: X in most methods, y in LabelEncoder, raw_documents in vectorizers.
        self.leading = names[0] if names else ""

    @property
    def X(self) -> Any:
        """The argument with the rows; None for a method without one."""
        return self.given.get(self.leading)

    @property
    def y(self) -> Any:
        """The targets, or None."""
        name = "Y" if "Y" in self.given else "y"  # Y in estimators of several outputs
        return self.given.get(name) if self.leading != name else None

    @functools.cached_property
    def place(self) -> Place | None:
        """The place of X; None for the host's own containers."""
        return container_place(self.X)

    @property
    def fits(self) -> bool:
        """Whether the method fits the estimator."""
        return self.name in FITS

    @property
    def record(self) -> FitRecord | None:
        """The record of the estimator's last fit."""
        return vars(self.estimator).get(RECORD)

    @property
    def uses_device(self) -> bool:
        """Whether an argument, or a parameter that a fit reads, is not the host's own."""
        given = any(container_kind(value) for value in self.given.values())
        return given or (self.fits and has_device_params(self.estimator))

    @property
    def predicts_labels(self) -> bool:
        """Whether the result is a classifier's labels."""
        return self.name == "predict" and is_classifier(self.estimator)

    def run(
        self,
        change: Callable[[str, Any], Any],
        estimator: Any = None,
        move: Callable[[Any], Any] = container_to_host,
    ) -> Any:
        """Run scikit-learn's own method on arguments ``change(name, value)``.

        Parameters of the estimator that are arrays on a device are moved by `move` for the call.
        """
        estimator = self.estimator if estimator is None else estimator
        on_device = move is not container_to_host
        given = {name: change(name, value) for name, value in self.given.items()}
        with (
            move_params(estimator, move, keep=self.fits, unwrap_scalars=on_device) as moved,
            bypass_wrapper(moved),
        ):
            return self.inner(moved, **given)

    def run_on_host(self, estimator: Any = None) -> Any:
        """Run scikit-learn's own method with all data on the host."""
        return self.run(lambda name, value: to_host_once(value), estimator)

    def place_result(self, result: Any) -> Any:
        """Move a result to its place: labels to the place of y at the fit, anything else to that of X."""
        if result is self.estimator or self.name == "score":
            return result
        if self.predicts_labels and self.record is not None:
            return place_labels(result, self.record, self.place)
        place = self.place if self.X is not None else self._fitted_place
        if place is None:
            return _parts_to_host(result)
        if container_kind(result) is not None and place.is_same(container_place(result)):
            return result
        moved = place.move(result)
        remember_host_copy(moved, result)  # the next step may run on the host, too
        return moved

    @property
    def _fitted_place(self) -> Place | None:
        names = self.record.place if self.record is not None else None
        return None if names is None else container_place(to_place(np.empty(0), names))


def _parts_to_host(result: Any) -> Any:
    if type(result) in (tuple, list):
        return type(result)(map(_parts_to_host, result))
    return container_to_host(result)


def portable_place(X: Any) -> tuple[str, str] | None:
    """The library and kind of device of a container, for another process; CuPy's for cuDF's frames."""
    place = container_place(X)
    return None if place is None else _portable(place)


def _portable(place: Place) -> tuple[str, str]:
    return place_of(place.xp.empty(0, device=place.device))


def portable_label_place(y: Any) -> tuple[str, str] | None:
    """The `portable_place` of labels of y; None, the host, for device frames of text too."""
    return None if is_text_frame(y) else portable_place(y)


def is_text_frame(y: Any) -> bool:
    """Whether y is a device frame or series without numbers, which no device array can hold."""
    return container_kind(y) == "frame" and getattr(getattr(y, "dtype", None), "kind", "O") not in "biuf"


def place_labels(labels: Any, record: FitRecord, place: Place | None) -> Any:
    """Move labels to the kind of place that y had at the fit: to X's device if that is of this kind."""
    if type(labels) is list:
        return [place_labels(one, record, place) for one in labels]
    if container_kind(labels) and portable_place(labels) == record.labels:
        return labels
    host = np.asarray(container_to_host(labels))
    if record.labels is None or host.dtype.kind not in "biuf":
        return host
    if place is not None and place.kind == "array" and _portable(place) == record.labels:
        return place.move(host)
    return to_place(host, record.labels)


def bypass_wrapper(estimator: Any) -> AbstractContextManager[Any]:
    """Let methods of an estimator run scikit-learn's own code directly inside a ``with`` block."""
    return set_in_block(_bypassed, estimator)


def bypasses_wrapper(estimator: Any) -> bool:
    """Whether the call comes from another method of the same estimator, see `bypass_wrapper`."""
    return _bypassed.get() is estimator


def refuse_frame_output(estimator: Any) -> None:
    """Raise Unsupported if ``set_output`` or the configuration ask for data frames, which the host makes."""
    container = output_container(estimator)
    if container != "default":
        raise Unsupported(f"its output is set to {container}")


def clear_fit(estimator: Any) -> None:
    """Remove all attributes that a fit set on an estimator."""
    configured: Mapping[str, Any] = vars(type(estimator)(**estimator.get_params(deep=False)))
    for name in set(vars(estimator)) - set(configured):
        if not name.startswith(("_sklearn", "_skl", "_metadata", "_parent")):
            delattr(estimator, name)
