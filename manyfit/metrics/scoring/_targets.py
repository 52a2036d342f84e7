"""The rows that predictions are scored on: targets, weights and classes, on the host."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.arrays import TransferCache
from manyfit.metrics.kernels._label_codes import codes_or_none

Array = NDArray[Any]


@dataclass(eq=False)
class ScoredTargets:
    """Targets `y`, (n,) or (n, q), weights and the estimator's classes, in the order of its columns.

    Weights are float64, finite and not negative. `given_dtype` is the dtype of the user's y, None for a list:
    the precision in which scikit-learn computes depends on it.
    """

    y: Array
    weight: Array | None = None
    classes: Array | None = None
    given_dtype: Any = None
    _transfers: TransferCache | None = field(default=None, init=False, repr=False)

    def to_device_of(self, array: Any, responses: Any, label: str) -> Any:
        """An array on the device of the responses, which is the same in all calls; each is sent once."""
        if self._transfers is None:
            self._transfers = TransferCache(responses)
        return self._transfers(array, label)

    @cached_property
    def one_output(self) -> bool:
        """Whether there is one target, and weight on some row."""
        if self.y.ndim != 1 or not len(self.y):
            return False
        return self.weight is None or bool(0.0 < self.weight.sum() < np.inf)

    @cached_property
    def varied(self) -> bool:
        """Whether rows that have weight have different targets."""
        y = self.y if self.weight is None else self.y[self.weight > 0]
        return bool(y.min() < y.max())

    @cached_property
    def codes(self) -> Array | None:
        """Position of the class of each row; None where scikit-learn might not take these for labels."""
        classes, y = self.classes, self.y
        if classes is None or classes.ndim != 1 or len(classes) < 2 or classes.dtype.kind != y.dtype.kind:
            return None
        # scikit-learn 1.7 warns of more classes than half of the rows.
        if not _are_labels(classes) or not _are_labels(y) or (len(y) > 20 and 2 * len(classes) >= len(y)):
            return None
        if not (classes[:-1] < classes[1:]).all():
            return None
        codes = codes_or_none(classes, y)
        return None if codes is None else codes.astype(np.int64)

    @cached_property
    def has_all_classes(self) -> bool:
        """Whether every class is the target of a row that has weight."""
        if self.codes is None or self.classes is None:
            return False
        codes = self.codes if self.weight is None else self.codes[self.weight > 0]
        return bool(np.bincount(codes, minlength=len(self.classes)).all())


def _are_labels(values: Array) -> bool:
    """Whether scikit-learn takes an array for labels, by its values."""
    if values.dtype.kind == "f":
        return bool((np.isfinite(values) & (values == np.trunc(values))).all())
    if values.dtype.kind == "O":
        return all(isinstance(value, str) for value in values)
    return values.dtype.kind in "biuU"
