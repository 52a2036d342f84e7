"""Labels as positions among sorted classes, on any device."""

from collections.abc import Callable
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, float_dtype, to_device_of, to_host
from manyfit.folds import Unsupported

Array = Any

TEXTS = "OUT"
# Longest table from integers to positions.
MAX_TABLE = 1 << 16
# Labels looked up at a time, so that they stay in a second-level cache.
BLOCK = 1 << 16


def encode_labels(y_true: Array, predictions: Array | None, classes: Any) -> tuple[Any, Array, Array]:
    """Sorted classes on the host, and positions in them of targets and of predictions.

    Raises Unsupported for text against numbers, for labels that are neither, and for labels of two dtypes
    that no common dtype tells apart.
    """
    both = [y_true] if predictions is None else [y_true, predictions]
    if isinstance(y_true, np.ndarray):
        _require_labels(both)
        classes, codes = _encode_on_host(both, classes)
        return classes, codes[0].astype(np.int64), None if predictions is None else codes[1]
    xp = array_namespace(y_true)
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
    coded = [xp.reshape(xp.searchsorted(known, xp.reshape(one, (-1,))), one.shape) for one in both]
    return classes, coded[0], None if predictions is None else coded[1]


def _encode_on_host(both: list[Any], classes: Any) -> tuple[Any, list[Any]]:
    """Sorted classes, and codes of labels in the narrowest signed dtype.

    Classes are the given ones, or the labels of the targets. The others are searched for only if a label is
    none of them.
    """
    classes = distinct_labels(both[0]) if classes is None else np.asarray(classes)
    codes = [codes_or_none(classes, labels) for labels in both]
    if all(known is not None for known in codes):
        return classes, codes
    classes = np.unique(np.concatenate([classes, *(distinct_labels(labels.reshape(-1)) for labels in both)]))
    codes = [codes_or_none(classes, labels) for labels in both]
    if any(known is None for known in codes):  # NaN is a class, though it equals none
        codes = [np.searchsorted(classes, labels).astype(_narrow(len(classes))) for labels in both]
    return classes, codes


def _require_labels(both: list[Any]) -> None:
    """Raise Unsupported unless NumPy tells all labels of one or two host arrays apart."""
    for labels in both:
        if labels.dtype.kind in "cSV" or (
            labels.dtype.kind == "O" and not all(isinstance(label, str) for label in labels.flat)
        ):
            raise Unsupported(f"labels of dtype {labels.dtype} that are no texts")
    y, predictions = both[0], both[-1]
    if y.dtype == predictions.dtype:
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


def distinct_labels(labels: Array) -> np.ndarray:
    """The different values of an array (n,), sorted, on the host; no others cross to it."""
    if isinstance(labels, np.ndarray):
        span = _span(labels)
        if span is None:
            return np.unique(labels)
        seen = np.zeros(len(span), dtype=bool)
        seen[[0, -1]] = True
        for j in range(0, labels.size, BLOCK):
            if seen.all():  # at once for two labels, often after a block for several
                break
            steps = labels[j : j + BLOCK].astype(np.int64) - span.start
            seen |= np.bincount(steps, minlength=len(span)) > 0
        return (np.flatnonzero(seen) + span.start).astype(labels.dtype)
    xp = array_namespace(labels)
    ordered = xp.sort(labels)
    first = xp.concat([xp.ones_like(ordered[:1], dtype=xp.bool), ordered[1:] != ordered[:-1]])
    # Not by a mask: the host would wait for its shape.
    places = xp.argsort(xp.astype(~first, xp.int8), stable=True)
    n = int(to_host(xp.count_nonzero(first)))
    return to_host(xp.take(ordered, places[:n]))


def _span(labels: Any) -> range | None:
    """The integers from the smallest to the largest label, if a table may hold all of them."""
    if labels.dtype.kind not in "iub" or not labels.size:
        return None
    low, high = int(labels.min()), int(labels.max())
    return range(low, high + 1) if high - low < MAX_TABLE and high <= np.iinfo(np.int64).max else None


def codes_or_none(classes: Any, labels: Any) -> Any:
    """Codes of labels on the host, in their shape and the narrowest dtype; None if some are no classes."""
    flat, codes = labels.reshape(-1), np.empty(labels.size, dtype=_narrow(len(classes)))
    look_up = _look_up(classes, labels.dtype)
    for j in range(0, labels.size, BLOCK):
        found = look_up(flat[j : j + BLOCK])
        if found is None:
            return None
        codes[j : j + BLOCK] = found
    return codes.reshape(labels.shape)


def _narrow(n: int) -> Any:
    return np.int8 if n < 2**7 else np.int16 if n < 2**15 else np.int64


def _look_up(classes: Any, dtype: Any) -> Callable[[Any], Any]:
    """A function from labels, (n,), to their codes, or None if some are no classes."""
    span = _span(classes)
    # Objects may not compare with other labels, and NumPy does not search some texts among StringDType.
    kinds = {dtype.kind, classes.dtype.kind}
    if dtype.kind == "O" or (len(kinds) == 2 and kinds & {"O", "T"}):
        places = {label: code for code, label in enumerate(classes.tolist())}

        def find(labels: Any) -> Any:
            codes = np.asarray([places.get(label, -1) for label in labels.tolist()])
            return None if codes.min() < 0 else codes

        return find
    if span is None or dtype.kind not in "iub" or (dtype == np.uint64 and span.start < 0):

        def bisect(labels: Any) -> Any:
            codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
            return codes if (classes[codes] == labels).all() else None

        return bisect
    return _in_table(classes, span, dtype)


def _in_table(classes: Any, span: range, dtype: Any) -> Callable[[Any], Any]:
    """`_look_up` of integers by a table of those that classes span."""
    # As an unsigned integer, a negative one of a small type could be a position in the table.
    shifted = span.start != 0 or (dtype.kind == "i" and span[-1] > np.iinfo(dtype).max)
    table = np.full(len(span), -1, dtype=_narrow(len(classes)))
    table[classes.astype(np.int64) - span.start] = np.arange(len(classes))

    def look_up(labels: Any) -> Any:
        places = labels.astype(np.int64) - span.start if shifted else labels
        # As unsigned integers, those below the smallest class are above the largest: one comparison for both.
        if places.view(f"u{places.dtype.itemsize}").max() >= len(span):
            return None
        if len(span) == len(classes):
            return places
        codes = table.take(places)
        return None if codes.min() < 0 else codes

    return look_up
