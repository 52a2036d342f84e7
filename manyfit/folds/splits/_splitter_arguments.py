"""Splits of data on a device: what scikit-learn reads of these is copied to the host once."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn import model_selection

from manyfit.arrays import array_namespace, device, is_on_device, label_transfers, to_device, to_host
from manyfit.introspection.class_names import sklearn_class_of

Array = Any

# Their folds depend on y; the others get its length only.
READ_Y = ("StratifiedKFold", "StratifiedGroupKFold", "StratifiedShuffleSplit", "RepeatedStratifiedKFold")
NAMES = (
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "LeavePGroupsOut",
    "LeavePOut",
    "PredefinedSplit",
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)


def host_copy(value: Any) -> Any:
    """A copy on the host of an array on a device; anything else as it is."""
    return to_host(value) if is_on_device(value) else value


def rows_of(value: Any) -> Any:
    """A host array with as many rows as an array on a device, whose values are not read."""
    return np.broadcast_to(np.zeros(()), value.shape[:1]) if is_on_device(value) else value


def _row_numbers(value: Any) -> Any:
    """The row numbers of an array on a device; anything else as it is."""
    return np.arange(value.shape[0]) if is_on_device(value) and value.ndim else rows_of(value)


_SERVED = {getattr(model_selection, name) for name in NAMES}


def splitter_arguments(
    cv: Any, X: Any, y: Any, params: Mapping[str, Any], copy_to_host: Callable[[Any], Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """Arguments of ``cv.split``: scikit-learn's splitters get host copies of the arrays that they read."""
    served = sklearn_class_of(type(cv))
    if served not in _SERVED:
        return X, y, dict(params)
    with label_transfers("y"):
        y = copy_to_host(y) if served.__name__ in READ_Y else rows_of(y)
    with label_transfers("groups"):
        return rows_of(X), y, {name: copy_to_host(value) for name, value in params.items()}


def train_test_split(
    *arrays: Any,
    test_size: Any = None,
    train_size: Any = None,
    random_state: Any = None,
    shuffle: bool = True,
    stratify: Any = None,
) -> list[Any]:
    """Split arrays, on host or device, into training and test rows as scikit-learn does.

    Parameters
    ----------
    *arrays : array-like of shape (n_samples, ...)
        On host or device, each where it lies; lists, sparse matrices and data frames too.
    test_size : float or int, optional
        Share or number of test rows; see `sklearn.model_selection.train_test_split`.
    train_size : float or int, optional
        Share or number of training rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling.
    shuffle : bool, default=True
        Whether rows are shuffled before they are split.
    stratify : array-like of shape (n_samples,), optional
        Labels whose shares both parts keep; from a device they come to the host.

    Returns
    -------
    list
        Training and test rows of each array, twice as many as `arrays`: rows of an array on a device lie
        on this device, cut by indices that are sent to it once.

    Raises
    ------
    ValueError
        If there is no array, if their lengths differ, or as scikit-learn does.
    """
    options = {"test_size": test_size, "train_size": train_size, "shuffle": shuffle}
    options |= {"random_state": random_state, "stratify": host_copy(stratify)}
    # Row numbers stand for arrays on a device: scikit-learn splits them, and the rows are taken on the
    # device.
    parts = model_selection.train_test_split(*map(_row_numbers, arrays), **options)
    sent: dict[Any, list[Array]] = {}
    out = []
    for j, array in enumerate(arrays):
        pair = parts[2 * j : 2 * j + 2]
        if not is_on_device(array):
            out += pair
            continue
        xp, place = array_namespace(array), device(array)
        key = (xp.__name__, str(place))
        if key not in sent:
            sent[key] = [to_device(rows, place, xp, label="indices") for rows in pair]
        out += [xp.take(array, rows, axis=0) for rows in sent[key]]
    return out
