"""y and sample weights as arrays of numbers or labels."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from manyfit.arrays import is_xp_array, to_host
from manyfit.exceptions import Unsupported
from manyfit.folds.rows._inputs import NUMBERS, has_dtype
from manyfit.folds.splits._atoms import Array


def as_targets(y: Any) -> Array:
    """y as an array of numbers of one or two dimensions; arrays are returned as they are, on any device.

    Raises `Unsupported` if y is missing or holds anything but float32, float64 or integers.
    """
    array = y if is_xp_array(y) and y.ndim in (1, 2) else as_labels(y)
    if not has_dtype(array, NUMBERS):
        raise Unsupported(f"y has dtype {array.dtype}, not float32, float64 or integer")
    return array


def as_labels(y: Any) -> Array:
    """y as a NumPy array of any dtype, of one or two dimensions, not empty; copied from a device.

    Raises `Unsupported` if y is missing or no such array.
    """
    if y is None or hasattr(y, "tocsr"):
        raise Unsupported("y is missing" if y is None else "y is sparse")
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "name", None) in ("str", "string") and hasattr(y, "isna") and not y.isna().any():
        # scikit-learn makes objects of pandas texts.
        y = np.asarray(y, dtype=object)
    elif dtype is not None and not isinstance(dtype, np.dtype) and hasattr(y, "array"):
        raise Unsupported(f"y has the pandas extension dtype {dtype}")
    if is_xp_array(y):
        y = to_host(y, label="y")
    try:
        array = np.asarray(y) if type(y) is not np.ndarray else y
    except ValueError as error:  # for lists of several lengths
        raise Unsupported("y is no array") from error
    if array.ndim not in (1, 2) or not array.size:
        raise Unsupported(f"y has shape {array.shape}")
    return array


def distinct_labels(y: Any) -> Array:
    """The different labels of y, sorted, if scikit-learn's classifiers take them for classes.

    Raises `Unsupported` if they do not sort together, such as 1 and "a", or are no classes, such as
    fractions.
    """
    try:
        labels: Array = np.unique(y)
        if labels.dtype.kind in "cmM":  # NaT is not equal to itself
            raise Unsupported(f"y has dtype {labels.dtype}")
        if labels.dtype.kind in "biuU":
            return labels
        # Each label three times: scikit-learn warns of almost as many classes as rows.
        with np.errstate(invalid="ignore"):  # NumPy warns if NaN is compared with integers
            check_classification_targets(np.tile(labels, 3))
    except Exception as error:  # objects raise what they like when they are compared
        raise Unsupported("y holds continuous numbers, or labels that do not sort together") from error
    return labels


def require_one_dimension(y: Array) -> None:
    """Raise `Unsupported` for a y of columns; scikit-learn warns of a single one."""
    if y.ndim != 1:
        raise Unsupported(
            "y is a frame or array of one column" if y.shape[1] == 1 else "y has several columns"
        )


def indicated_classes(y: Array) -> Array:
    """The classes of labels whose indicators are summed; raises `Unsupported` if there are none, or one."""
    require_one_dimension(y)
    classes = distinct_labels(y)
    if len(classes) < 2:
        raise Unsupported("y has one class")
    return classes


def class_indicators(labels: Array, classes: Array) -> Array:
    """1 for the class of each row and -1 for the others, (n, n_classes); of two classes the second alone.

    Reference: sklearn.preprocessing.LabelBinarizer (1.9) with ``neg_label=-1``.
    """
    asked = classes if len(classes) > 2 else classes[1:]
    return np.where(labels[:, None] == asked, 1.0, -1.0)


def as_weights(weights: Any, n_samples: int) -> Array | None:
    """Sample weights, one finite number from 0 for each row, as a float64 copy on the host; None stays None.

    Raises `Unsupported` for weights that scikit-learn would refuse or treat in its own way.
    """
    if weights is None:
        return None
    array = to_host(weights, label="weights") if is_xp_array(weights) else np.asarray(weights)
    if array.shape != (n_samples,) or array.dtype.kind not in "fiu":
        raise Unsupported("sample_weight is not one number a row")
    array = array.astype(np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise Unsupported("sample_weight has values that are negative or not finite")
    return array
