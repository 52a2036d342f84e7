"""Metrics of many settings at once, wherever predictions lie: what a kernel sees, and how it is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from manyfit.arrays import array_namespace, device, to_device, to_host
from manyfit.folds import Unsupported
from manyfit.metrics._host_codes import codes_on_host, distinct_on_host, encoded_on_host

Array = Any

# Bytes of predictions that a kernel sees at a time on the host, where a second-level cache holds them from
# one step to the next, and elsewhere, where each call costs a launch.
HOST_BYTES = 2**19
DEVICE_BYTES = 2**28

Kind = Literal["numbers", "labels", "scores"]


@dataclass(frozen=True)
class Targets:
    """What the predictions of n rows are scored against; arrays lie where the predictions do.

    Attributes
    ----------
    numbers : array of shape (n,) or (n, q), or None
        Targets of regression, or indicators of several labels.
    codes : array of int64 of shape (n,), or None
        Positions of labels in `classes`.
    classes : ndarray of shape (n_classes,), or None
        Sorted labels; on the host.
    weight : array of shape (n,), or None
        Sample weights; None: all 1.
    """

    numbers: Array = None
    codes: Array = None
    classes: Any = None
    weight: Array = None

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 if there are none."""
        return 0 if self.classes is None else len(self.classes)

    def mean(self, rows: Array) -> Array:
        """Weighted mean along the last axis, of shape (n,)."""
        xp = array_namespace(rows)
        if not xp.isdtype(rows.dtype, "real floating"):
            rows = xp.astype(rows, floating(rows) if self.weight is None else self.weight.dtype)
        if self.weight is None:
            return xp.mean(rows, axis=-1)
        return xp.sum(rows * self.weight, axis=-1) / xp.sum(self.weight)


def floating(like: Array) -> Any:
    """The widest floating dtype that the library of an array has on its device."""
    info = array_namespace(like).__array_namespace_info__()
    dtypes = info.dtypes(device=device(like), kind="real floating")
    return dtypes.get("float64", dtypes["float32"])


@dataclass(frozen=True)
class Many:
    """A metric that takes the predictions of many settings.

    Attributes
    ----------
    kernel : callable
        ``kernel(targets, P, **options)`` returns scores of shape (m,), where `P` lies, from predictions of m
        settings: numbers of shape (m, n) or (m, n, q); codes of labels, of shape (m, n) and an integer dtype;
        or scores of classes, (m, n) or (m, n, n_classes). Array API only, no shape that depends on data, and
        nothing that makes the host wait. NaN where scikit-learn refuses these predictions.
    kind : {"numbers", "labels", "scores"}
        What it reads.
    options : dict
        Keyword arguments of scikit-learn's function, with the values that they have if not given. An option
        that is not here is not supported.
    """

    kernel: Callable[..., Array]
    kind: Kind
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self,
        y_true: Array,
        predictions: Array,
        *,
        sample_weight: Array | None = None,
        classes: Any = None,
        max_bytes: int | None = None,
        **options: Any,
    ) -> Array:
        """Scores of m settings.

        Parameters
        ----------
        y_true : array of shape (n,), (n, q) or (n, n_labels)
            Targets, where the predictions lie or on the host.
        predictions : array of shape (m, n) or (m, n, q)
            Of m settings.
        sample_weight : array of shape (n,), optional
            Where the predictions lie or on the host.
        classes : ndarray of shape (n_classes,), optional
            Sorted labels, on the host. By default they are looked for, for which the host waits twice.
        max_bytes : int, optional
            Predictions that are scored at a time; the kernel takes a small multiple of it beside them.
        **options : dict
            See the class.

        Returns
        -------
        array of shape (m,)
            Where the predictions lie.

        Raises
        ------
        Unsupported
            If an option is not supported.
        """
        strange = set(options) - set(self.options)
        if strange:
            raise Unsupported(f"{', '.join(sorted(strange))} is not supported for many settings")
        targets, predictions = as_targets(self.kind, y_true, predictions, sample_weight, classes)
        chosen = {**self.options, **options}
        return in_chunks(lambda P: self.kernel(targets, P, **chosen), predictions, max_bytes)


def as_targets(
    kind: Kind, y_true: Array, predictions: Array, sample_weight: Array | None = None, classes: Any = None
) -> tuple[Targets, Array]:
    """What a kernel is given of targets and predictions; see `Many.__call__`."""
    xp = array_namespace(predictions)
    if kind == "scores" and isinstance(y_true, np.ndarray) and y_true.dtype.kind in "OUS":
        # A device has no texts: their positions go there.
        classes, y_true, _ = encoded(y_true, None, classes)
        texts, classes = classes, np.arange(len(classes))
    else:
        texts = None
    y_true, sample_weight = beside(y_true, predictions), beside(sample_weight, predictions)
    if sample_weight is not None and not xp.isdtype(sample_weight.dtype, "real floating"):
        sample_weight = xp.astype(sample_weight, floating(predictions))
    if kind == "labels" and y_true.ndim == 1:
        classes, y_true, predictions = encoded(y_true, predictions, classes)
        targets = Targets(codes=y_true, classes=classes, weight=sample_weight)
    elif kind == "scores" and y_true.ndim == 1:
        classes, y_true, _ = encoded(y_true, None, classes)
        classes = classes if texts is None else texts
        targets = Targets(codes=y_true, classes=classes, weight=sample_weight)
    else:
        targets = Targets(numbers=y_true, classes=classes, weight=sample_weight)
    return targets, predictions


def in_chunks(scores: Callable[[Array], Array], predictions: Array, max_bytes: int | None = None) -> Array:
    """Scores of (m, ...) predictions, some settings at a time."""
    xp, m = array_namespace(predictions), predictions.shape[0]
    if max_bytes is None:
        max_bytes = HOST_BYTES if isinstance(predictions, np.ndarray) else DEVICE_BYTES
    of_one = 8 * int(np.prod(predictions.shape[1:]))
    step = max(1, max_bytes // max(of_one, 1))
    if step >= m:
        return scores(predictions)
    return xp.concat([scores(predictions[j : min(j + step, m), ...]) for j in range(0, m, step)])


def beside(array: Any, predictions: Array) -> Any:
    """An array where the predictions lie; None stays."""
    if array is None:
        return None
    xp = array_namespace(predictions)
    return to_device(array, device(predictions), xp)


def encoded(y_true: Array, predictions: Array | None, classes: Any) -> tuple[Any, Array, Array]:
    """Sorted classes, on the host, and positions in them of labels.

    Raises
    ------
    Unsupported
        If one side is text and the other is not.
    """
    xp = array_namespace(y_true)
    if isinstance(y_true, np.ndarray):
        if predictions is not None and (y_true.dtype.kind in "OUST") != (predictions.dtype.kind in "OUST"):
            raise Unsupported(f"labels of dtype {predictions.dtype} for targets of dtype {y_true.dtype}")
        return encoded_on_host(y_true, predictions, classes)
    if predictions is not None:
        y_true, predictions = in_one_kind(y_true, predictions)
    if xp.isdtype(y_true.dtype, "bool"):  # which the array API does not sort
        predictions = None if predictions is None else xp.astype(predictions, xp.int8)
        classes = None if classes is None else np.asarray(classes).astype(np.int8)
        found, codes, predictions = encoded(xp.astype(y_true, xp.int8), predictions, classes)
        return found.astype(bool), codes, predictions
    if classes is None:
        both = xp.reshape(y_true, (-1,))
        if predictions is not None:
            both = xp.concat([both, xp.reshape(predictions, (-1,))])
        classes = distinct(both)
    known = beside(classes, y_true)
    codes = xp.searchsorted(known, y_true)
    return classes, codes, None if predictions is None else codes_of(known, predictions)


def in_one_kind(first: Array, second: Array) -> tuple[Array, Array]:
    """Two arrays, as floating ones if only one of them is, and booleans as integers if only one of them is.

    The array API does not bring them together.
    """
    xp = array_namespace(first, second)

    def as_like(array: Array, other: Array) -> Array:
        if xp.isdtype(array.dtype, "bool") and not xp.isdtype(other.dtype, "bool"):
            array = xp.astype(array, xp.int8)
        if xp.isdtype(array.dtype, "integral") and xp.isdtype(other.dtype, "real floating"):
            array = xp.astype(array, floating(other))
        return array

    return as_like(first, second), as_like(second, first)


def codes_of(classes: Array, labels: Array) -> Array:
    """Positions of labels among sorted classes, in the shape of the labels; all are there where they lie."""
    if isinstance(labels, np.ndarray):
        return codes_on_host(classes, labels)
    xp = array_namespace(labels)
    return xp.reshape(xp.searchsorted(classes, xp.reshape(labels, (-1,))), labels.shape)


def distinct(labels: Array) -> np.ndarray:
    """The different values of an array of shape (n,), sorted, on the host, where only they are brought."""
    if isinstance(labels, np.ndarray):
        return distinct_on_host(labels)
    xp = array_namespace(labels)
    ordered = xp.sort(labels)
    first = xp.concat([xp.ones_like(ordered[:1], dtype=xp.bool), ordered[1:] != ordered[:-1]])
    # No mask: its shape would have the host wait once more.
    places = xp.argsort(xp.astype(~first, xp.int8), stable=True)
    n = int(to_host(xp.count_nonzero(first)))
    return to_host(xp.take(ordered, places[:n]))
