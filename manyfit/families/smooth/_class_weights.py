"""Class weights, which ``"balanced"`` makes different on every split."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from manyfit.folds import PassData

Array = NDArray[Any]


def class_weights(class_weight: Any, classes: Array, codes: Array, data: PassData) -> Array | None:
    """Weights of the classes on each split.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        The estimator's parameter.
    classes : ndarray of shape (n_classes,)
        Labels.
    codes : ndarray of int of shape (n,)
        The class of each row.
    data : PassData
        The splits and the sample weights.

    Returns
    -------
    ndarray of shape (n_splits, n_classes) or None
        None where all are 1.
    """
    if class_weight is None:
        return None
    rows = np.arange(len(codes))
    weights = []
    for group in data.groups:
        for counts in group.train:
            # scikit-learn's own rule, on the labels of the training part.
            part = [np.repeat(rows[r], int(c)) for r, c in zip(group.rows, counts, strict=True) if c]
            index = np.concatenate(part)
            own = None if data.weight is None else data.weight[index]
            weights.append(
                compute_class_weight(
                    class_weight, classes=classes, y=classes[codes[index]], sample_weight=own
                )
            )
    return np.stack(weights)
