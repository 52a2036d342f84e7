"""Class weights, which ``"balanced"`` makes different on every split."""

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from manyfit.families.protocol import Array
from manyfit.folds import PassData


def class_weights(class_weight: Any, classes: Array, codes: Array, data: PassData) -> Array | None:
    """Weights of the classes on each split, (n_splits, n_classes), from the estimator's `class_weight`.

    `codes`, (n,), is the class of each row; None if all weights are 1.
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
