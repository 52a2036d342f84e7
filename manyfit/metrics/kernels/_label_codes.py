"""Labels as positions among sorted classes, on any device."""

from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, float_dtype, to_device_of, to_host
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._label_codes_numpy import (
    distinct_labels_numpy,
    encode_labels_numpy,
    label_codes_numpy,
)

Array = Any

TEXTS = "OUT"


def encode_labels(y_true: Array, predictions: Array | None, classes: Any) -> tuple[Any, Array, Array]:
    """Sorted classes on the host, and positions in them of targets and of predictions.

    Raises Unsupported for text against numbers, for labels that are neither, and for labels of two dtypes
    that no common dtype tells apart.
    """
    if isinstance(y_true, np.ndarray):
        _require_labels(y_true, predictions)
        return encode_labels_numpy(y_true, predictions, classes)
    xp = array_namespace(y_true)
    both = [y_true] if predictions is None else [y_true, predictions]
    if all(xp.isdtype(labels.dtype, "bool") for labels in both):  # which the array API does not sort
        both = [xp.astype(labels, xp.int8) for labels in both]
        classes = None if classes is None else np.asarray(classes).astype(np.int8)
        found, codes, coded = encode_labels(both[0], None if predictions is None else both[1], classes)
        return found.astype(bool), codes, coded
    both, most = _to_common_dtype(xp, both)
    if classes is None:
        classes = distinct_labels(xp.concat([xp.reshape(labels, (-1,)) for labels in both]))
    if most is not None and len(classes) and not np.max(np.abs(classes)) < most:
        raise Unsupported(f"labels of two dtypes, integers of {most} or more among them")
    known = to_device_of(classes, both[0])
    coded = None if predictions is None else label_codes(known, both[1])
    return classes, xp.searchsorted(known, both[0]), coded


def _require_labels(y: Array, predictions: Array | None) -> None:
    """Raise Unsupported unless NumPy tells all labels of two host arrays apart."""
    both = [y] if predictions is None else [y, predictions]
    for labels in both:
        if labels.dtype.kind in "cSV" or (
            labels.dtype.kind == "O" and not all(isinstance(label, str) for label in labels.flat)
        ):
            raise Unsupported(f"labels of dtype {labels.dtype} that are no texts")
    if predictions is None or y.dtype == predictions.dtype:
        return
    if (y.dtype.kind in TEXTS) != (predictions.dtype.kind in TEXTS):
        raise Unsupported(f"labels of dtype {predictions.dtype} for targets of dtype {y.dtype}")
    if y.dtype.kind in TEXTS:
        return
    common = np.result_type(y, predictions)
    if common.kind != "f":
        return
    most = 2 ** (np.finfo(common).nmant + 1)
    for labels in both:
        if labels.dtype.kind in "iu" and labels.size and max(-int(labels.min()), int(labels.max())) >= most:
            raise Unsupported(f"labels of two dtypes, integers of {most} or more among them")


def require_exact(scores: Array) -> None:
    """Raise Unsupported for integer scores that floats, in which kernels compare, do not tell apart.

    The host waits for the largest of 64-bit integers on a device.
    """
    xp = array_namespace(scores)
    if scores.dtype not in (xp.int64, xp.uint64) or 0 in scores.shape:
        return
    most = round(2 / float(xp.finfo(float_dtype(scores)).eps))
    beyond = (scores > most) if scores.dtype == xp.uint64 else (scores > most) | (scores < -most)
    if to_host(xp.any(beyond)):
        raise Unsupported(f"scores that are integers beyond {most}")


def _to_common_dtype(xp: Any, both: list[Array]) -> tuple[list[Array], int | None]:
    """Labels in a common dtype, and the size from which it does not tell integers apart, or None."""
    if len(both) < 2 or both[0].dtype == both[1].dtype:
        return both, None
    both = [xp.astype(each, xp.int8) if xp.isdtype(each.dtype, "bool") else each for each in both]
    kinds = ("signed integer", "unsigned integer", "real floating")
    kind = [next((kind for kind in kinds if xp.isdtype(each.dtype, kind)), None) for each in both]
    wide_unsigned = any(each.dtype == xp.uint64 for each in both)
    mixed = kind[0] != kind[1] and ("real floating" in kind or wide_unsigned)
    dtype = float_dtype(both[0]) if mixed else xp.result_type(*both)
    most = round(2 / float(xp.finfo(dtype).eps)) if mixed else None
    return [xp.astype(each, dtype, copy=False) for each in both], most


def label_codes(classes: Array, labels: Array) -> Array:
    """Positions of labels among sorted classes that hold them all, in the shape of the labels."""
    if isinstance(labels, np.ndarray):
        return label_codes_numpy(classes, labels)
    xp = array_namespace(labels)
    return xp.reshape(xp.searchsorted(classes, xp.reshape(labels, (-1,))), labels.shape)


def distinct_labels(labels: Array) -> np.ndarray:
    """The different values of an array (n,), sorted, on the host; no others cross to it."""
    if isinstance(labels, np.ndarray):
        return distinct_labels_numpy(labels)
    xp = array_namespace(labels)
    ordered = xp.sort(labels)
    first = xp.concat([xp.ones_like(ordered[:1], dtype=xp.bool), ordered[1:] != ordered[:-1]])
    # Not by a mask: the host would wait for its shape.
    places = xp.argsort(xp.astype(~first, xp.int8), stable=True)
    n = int(to_host(xp.count_nonzero(first)))
    return to_host(xp.take(ordered, places[:n]))
