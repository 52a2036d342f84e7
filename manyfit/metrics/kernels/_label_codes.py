"""Labels as positions among sorted classes, wherever they lie."""

from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, float_dtype, to_device_of, to_host
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._label_codes_numpy import codes_on_host, distinct_on_host, encoded_on_host

Array = Any

TEXTS = "OUT"


def encoded(y_true: Array, predictions: Array | None, classes: Any) -> tuple[Any, Array, Array]:
    """Sorted classes, on the host, and positions in them of labels.

    Raises
    ------
    Unsupported
        If one side is text and the other is not, if something else than numbers and texts is a label, or if
        labels of two dtypes have no dtype in common that tells them all apart.
    """
    if isinstance(y_true, np.ndarray):
        _require_labels(y_true, predictions)
        return encoded_on_host(y_true, predictions, classes)
    xp = array_namespace(y_true)
    both = [y_true] if predictions is None else [y_true, predictions]
    if all(xp.isdtype(labels.dtype, "bool") for labels in both):  # which the array API does not sort
        both = [xp.astype(labels, xp.int8) for labels in both]
        classes = None if classes is None else np.asarray(classes).astype(np.int8)
        found, codes, coded = encoded(both[0], None if predictions is None else both[1], classes)
        return found.astype(bool), codes, coded
    both, most = _of_one_dtype(xp, both)
    if classes is None:
        classes = distinct(xp.concat([xp.reshape(labels, (-1,)) for labels in both]))
    if most is not None and len(classes) and not np.max(np.abs(classes)) < most:
        raise Unsupported(f"labels of two dtypes, integers of {most} or more among them")
    known = to_device_of(classes, both[0])
    coded = None if predictions is None else codes_of(known, both[1])
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
    """Raise Unsupported if floats, which kernels compare scores as, do not tell these integers apart.

    Of integers of 64 bits on a device the host waits for the largest one.
    """
    xp = array_namespace(scores)
    if scores.dtype not in (xp.int64, xp.uint64) or 0 in scores.shape:
        return
    most = round(2 / float(xp.finfo(float_dtype(scores)).eps))
    beyond = (scores > most) if scores.dtype == xp.uint64 else (scores > most) | (scores < -most)
    if to_host(xp.any(beyond)):
        raise Unsupported(f"scores that are integers beyond {most}")


def _of_one_dtype(xp: Any, both: list[Array]) -> tuple[list[Array], int | None]:
    """Labels in a dtype that holds all, and the size from which not all are told apart; None: they are."""
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
