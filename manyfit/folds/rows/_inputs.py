"""What of X and y can be read as one matrix of numbers, as scikit-learn would read it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from manyfit.arrays import device, float_dtype, is_xp_array, numpy_dtype, to_host
from manyfit.exceptions import Unsupported

Array = NDArray[Any]

# Other dtypes are converted by scikit-learn with rules, warnings and errors of its own.
_DTYPES = frozenset(["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])


def as_matrix(X: Any) -> Array:
    """X as a two-dimensional array of float32, float64, integers or bools.

    Parameters
    ----------
    X : array-like of shape (n, p)
        What the user gave: an array in host memory, a memory map, a DataFrame, or an array of another library
        of the array API, on any device.

    Returns
    -------
    array of shape (n, p)
        An array is returned as it is, with its dtype and without a look at its values; a DataFrame is copied
        once where its columns do not lie in one array.

    Raises
    ------
    Unsupported
        If X is anything else: sparse, lists, other dtypes, a subclass of ndarray, a lazy array.
    """
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        X = _frame_to_numpy(X)
    if type(X) not in (np.ndarray, np.memmap) and not is_xp_array(X):
        raise Unsupported(f"X is a {type(X).__name__}, not a dense array or DataFrame")
    if X.ndim != 2 or not _is_one_of(X, _DTYPES | {"b1"}):
        raise Unsupported(
            f"X has {X.ndim} dimensions and dtype {X.dtype}, not two and float32, float64, integer or bool"
        )
    if 0 in X.shape:
        raise Unsupported(f"X is empty: shape {X.shape}")
    if is_xp_array(X) and "float64" not in str(float_dtype(X)):
        # Sums of squares in float32 keep too few digits to be taken apart again.
        raise Unsupported(f"the device {device(X)} has no float64, so that fits there are made in float32")
    return X


def _is_one_of(X: Any, dtypes: frozenset[str]) -> bool:
    """Whether the dtype of an array is one of these, as this machine has them."""
    try:
        dtype = numpy_dtype(X)
    except TypeError:  # NumPy has no such dtype
        return False
    return dtype.str[1:] in dtypes and dtype.isnative


def as_matrix_or_csr(X: Any) -> Any:
    """X as a dense matrix of numbers, or as a CSR matrix of float32 or float64.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        What the user gave, in host memory.

    Returns
    -------
    ndarray or csr_array or csr_matrix of shape (n, p)
        As it is where it is one of these; other sparse formats are converted.

    Raises
    ------
    Unsupported
        See `as_matrix`.
    """
    if not hasattr(X, "tocsr"):
        return as_matrix(X)
    if X.ndim != 2 or X.dtype.str[1:] not in ("f4", "f8", "i1", "i2", "i4", "i8") or 0 in X.shape:
        raise Unsupported(f"X is sparse with {X.ndim} dimensions, shape {X.shape} and dtype {X.dtype}")
    X = X.tocsr()
    if X.dtype.kind == "i":
        X = X.astype(np.float64)  # as scikit-learn does; counts of words
    if not np.isfinite(X.data).all():
        raise Unsupported("X holds NaN or infinity")
    return X


def _frame_to_numpy(frame: Any) -> Array:
    names = list(frame.columns)
    if any(isinstance(name, str) for name in names) and not all(isinstance(name, str) for name in names):
        raise Unsupported("the columns of X have names of several types")
    if len(set(names)) < len(names):
        raise Unsupported("columns of X have the same name")
    dtypes = frame.dtypes.tolist() if hasattr(frame.dtypes, "tolist") else None
    if dtypes is not None and not all(isinstance(dtype, np.dtype) for dtype in dtypes):
        raise Unsupported("X has columns of pandas extension dtypes")
    if dtypes is not None and any(dtype.kind == "b" for dtype in dtypes):
        # pandas makes objects of bools beside numbers; scikit-learn reads both as numbers.
        common = np.result_type(*dtypes) if all(dtype.kind in "biuf" for dtype in dtypes) else None
        return np.asarray(frame.to_numpy(dtype=common))
    return np.asarray(frame.to_numpy())


def as_targets(y: Any) -> Array:
    """y as an array of numbers, of one or two dimensions.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, q)
        What the user gave.

    Returns
    -------
    array of shape (n,) or (n, q)
        float32, float64 or integer; an array is returned as it is, wherever it lies.

    Raises
    ------
    Unsupported
        If y is missing or is not numeric.
    """
    array = y if is_xp_array(y) and y.ndim in (1, 2) else as_labels(y)
    if not _is_one_of(array, _DTYPES):
        raise Unsupported(f"y has dtype {array.dtype}, not float32, float64 or integer")
    return array


def as_labels(y: Any) -> Array:
    """y as an array of one or two dimensions, of any dtype.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, q)
        What the user gave.

    Returns
    -------
    ndarray of shape (n,) or (n, q)
        On the host, not empty, where one of a device is brought; an array of NumPy is returned as it is.

    Raises
    ------
    Unsupported
        If y is missing or is no such array.
    """
    if y is None or hasattr(y, "tocsr"):
        raise Unsupported("y is missing or sparse")
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "name", None) in ("str", "string") and hasattr(y, "isna") and not y.isna().any():
        # Texts of pandas are the objects that scikit-learn makes of them.
        y = np.asarray(y, dtype=object)
    elif dtype is not None and not isinstance(dtype, np.dtype) and hasattr(y, "array"):
        raise Unsupported(f"y has the pandas extension dtype {dtype}")
    if is_xp_array(y):
        y = to_host(y, label="y")
    try:
        array = np.asarray(y) if type(y) is not np.ndarray else y
    except ValueError as error:  # of lists of several lengths
        raise Unsupported("y is no array") from error
    if array.ndim not in (1, 2) or not array.size:
        raise Unsupported(f"y has shape {array.shape}")
    return array


def distinct_labels(y: Any) -> Array:
    """The different labels of y, sorted, if scikit-learn's classifiers take them for classes.

    Parameters
    ----------
    y : array-like
        Of the host.

    Returns
    -------
    ndarray of shape (n_labels,)
        On the host.

    Raises
    ------
    Unsupported
        If the labels cannot be sorted together, such as 1 and "a", or a text and None, or are no classes,
        such as fractions or integers in an array of objects.
    """
    try:
        labels: Array = np.unique(y)
        if labels.dtype.kind in "cmM":  # NaT, say, is not equal to itself
            raise Unsupported(f"y has dtype {labels.dtype}")
        # Each three times: scikit-learn warns of classes that are almost as many as the rows.
        with np.errstate(invalid="ignore"):  # and NumPy where NaN is compared with integers
            check_classification_targets(np.tile(labels, 3))
    except Exception as error:  # objects raise what they like when they are compared
        raise Unsupported("y holds labels that do not sort together, or are no classes") from error
    return labels


def as_weights(weights: Any, n_samples: int) -> Array | None:
    """Sample weights as a float64 array, or None.

    Parameters
    ----------
    weights : array-like of shape (n_samples,) or None
        What the user gave: finite and not negative.
    n_samples : int
        Rows of X.

    Returns
    -------
    ndarray of shape (n_samples,) or None
        A copy in float64, on the host; None where none were given.

    Raises
    ------
    Unsupported
        If they are anything that scikit-learn would refuse or treat in its own way.
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
