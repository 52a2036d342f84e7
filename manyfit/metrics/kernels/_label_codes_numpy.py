"""Positions of labels among classes on the host, without sorting the labels."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# From labels, (n,), to their codes, or None if some are no classes.
LookUp = Callable[[Array], Array | None]

# Labels looked up at a time, so that they stay in a second-level cache.
BLOCK = 1 << 16
# Most classes that values other than integers are compared with one by one.
FEW_CLASSES = 16
# Longest table from integers to positions.
MAX_TABLE = 1 << 16


def encode_labels_numpy(y: Array, predictions: Array | None, classes: Array | None) -> tuple[Any, Array, Any]:
    """Sorted classes, int64 codes of `y`, and codes of predictions in the narrowest signed dtype.

    Classes are the given ones, or the labels of `y`. The others are searched for only if a label is none of
    them.
    """
    classes = distinct_labels_numpy(y) if classes is None else np.asarray(classes)
    both = [y] if predictions is None else [y, predictions]
    found = [codes_or_none(classes, labels) for labels in both]
    codes = [known for known in found if known is not None]
    if len(codes) < len(both):
        classes = np.unique(np.concatenate([classes, *(distinct_labels_numpy(labels) for labels in both)]))
        codes = [label_codes_numpy(classes, labels) for labels in both]
    return classes, codes[0].astype(np.int64), codes[1] if predictions is not None else None


def distinct_labels_numpy(labels: Array) -> Array:
    """The different values of an array (n,), sorted."""
    low_high = _range(labels)
    if low_high is None:
        first = np.unique(labels[:BLOCK])
        # If the first rows have all labels, looking up is quicker than sorting.
        complete = len(first) <= FEW_CLASSES and codes_or_none(first, labels) is not None
        return first if complete else np.unique(labels)
    low, high = low_high
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[[0, -1]] = True
    for block in _blocks(labels):
        if seen.all():
            break
        seen |= np.bincount(_steps(block, low), minlength=len(seen)) > 0
    values: Array = np.flatnonzero(seen)
    # The largest unsigned integers do not fit the signed type.
    values = values.astype(np.uint64) + np.uint64(low) if labels.dtype.kind == "u" else values + low
    return values.astype(labels.dtype)


def _range(labels: Array) -> tuple[int, int] | None:
    """Smallest and largest integer, if a table may hold all between them."""
    if labels.dtype.kind not in "iub" or not labels.size:
        return None
    low, high = int(labels.min()), int(labels.max())
    return (low, high) if high - low < MAX_TABLE else None


def _blocks(labels: Array) -> list[Array]:
    # reshape copies only what is not contiguous.
    flat = labels.reshape(-1)
    return [flat[j : j + BLOCK] for j in range(0, len(flat), BLOCK)]


def _steps(block: Array, low: int) -> Array:
    """Differences of integers from the smallest one; a value that wraps once wraps back."""
    if low > np.iinfo(np.int64).max:
        return (block - np.uint64(low)).astype(np.int64)
    return block.astype(np.int64) - low


def codes_or_none(classes: Array, labels: Array) -> Array | None:
    """Codes of labels in their shape; None if some are no classes."""
    codes = np.empty(labels.size, dtype=_narrow(len(classes)))
    look_up = _by_table(classes, labels.dtype) or _by_value(classes, labels.dtype)
    for j, block in enumerate(_blocks(labels)):
        known = look_up(block)
        if known is None:
            return None
        codes[j * BLOCK : j * BLOCK + len(block)] = known
    return codes.reshape(labels.shape)


def label_codes_numpy(classes: Array, labels: Array) -> Array:
    """Codes of labels that are all classes; NaN is one, though it equals none."""
    codes = codes_or_none(classes, labels)
    if codes is None:
        codes = np.searchsorted(classes, labels).astype(_narrow(len(classes) + 1))
    return codes


def _narrow(n: int) -> Any:
    return np.int8 if n < 2**7 else np.int16 if n < 2**15 else np.int64


def _by_table(classes: Array, dtype: Any) -> LookUp | None:
    """Look-up of integers in a table from the smallest to the largest class, if it is short enough."""
    low_high = _range(classes)
    # Some 64-bit unsigned integers would wrap to negative classes.
    if low_high is None or dtype.kind not in "iub" or (dtype == np.uint64 and low_high[0] < 0):
        return None
    low, high = low_high
    # As an unsigned integer, a negative one of a small type could be a position in the table.
    widened = low != 0 or (dtype.kind == "i" and high > np.iinfo(dtype).max)
    table = None
    if high - low >= len(classes):
        table = np.full(high - low + 1, -1, dtype=_narrow(len(classes)))
        table[_steps(classes, low)] = np.arange(len(classes))

    def look_up(block: Array) -> Array | None:
        steps = _steps(block, low) if widened else block
        # As unsigned integers, those below the smallest class are above the largest: one comparison for both.
        if steps.view(f"u{steps.dtype.itemsize}").max() > high - low:
            return None
        if table is None:
            return steps
        codes = table.take(steps)
        return None if codes.min() < 0 else codes

    return look_up


def _by_value(classes: Array, dtype: Any) -> LookUp:
    """Look-up of any values: by comparison with each class, or by bisection if that is quicker."""
    if dtype.kind == "O":  # which may hold what does not compare with texts
        places = {label: code for code, label in enumerate(classes.tolist())}

    def find(block: Array) -> Array | None:
        codes = np.asarray([places.get(label, -1) for label in block.tolist()])
        return None if codes.min() < 0 else codes

    def compare(block: Array) -> Array | None:
        codes = np.full(len(block), -1, dtype=np.int8)
        for code, value in enumerate(classes):
            np.putmask(codes, block == value, code)
        return None if codes.min() < 0 else codes

    def bisect(block: Array) -> Array | None:
        codes = np.minimum(np.searchsorted(classes, block), len(classes) - 1)
        return codes if (classes[codes] == block).all() else None

    if dtype.kind == "O":
        return find
    return compare if len(classes) <= FEW_CLASSES else bisect
