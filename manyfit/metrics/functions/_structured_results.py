"""Metrics with results other than one score, on a device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from manyfit.arrays import array_namespace, float_dtype, is_array, to_device_of, to_host

Array = Any


@dataclass(frozen=True)
class StructuredMetric:
    """A metric with more than one score, for rows on a device.

    ``compute(function, y_true, predicted, sample_weight, **options)`` returns what scikit-learn's `function`
    does, with arrays on the device of `predicted`; `y_true` may be on the host. Shapes depend on values only
    through numbers that the host has read. It raises and warns as scikit-learn does. `host_reads` is the text
    of the docstring on what the host reads.
    """

    compute: Callable[..., Any]
    host_reads: str

    def __call__(
        self, function: Callable[..., Any], y_true: Any, predicted: Array, sample_weight: Any, **options: Any
    ) -> Any:
        """The result of `function` on the device of the predictions; may raise Unsupported."""
        options = {name: to_host(one) if is_array(one) else one for name, one in options.items()}
        lengths = {array.shape[:1] for array in (y_true, predicted, sample_weight) if array is not None}
        if len(lengths) > 1 or lengths & {(), (0,)}:
            # scikit-learn's errors about empty arrays and wrong shapes name nothing but shapes.
            blank = [np.broadcast_to(np.int64(1), array.shape) for array in (y_true, predicted)]
            if sample_weight is not None:
                options["sample_weight"] = np.broadcast_to(1.0, sample_weight.shape)
            found = function(*blank, **options)
            check_consistent_length(y_true, predicted, sample_weight)
            return result_to_device(found, predicted)
        return self.compute(function, y_true, predicted, to_device_of(sample_weight, predicted), **options)


def result_to_device(result: Any, like: Array) -> Any:
    """Host arrays and numbers as arrays on the device of another; texts, dicts and None stay."""
    if isinstance(result, tuple | list):
        return tuple(result_to_device(one, like) for one in result)
    if result is None or isinstance(result, str | dict):
        return result
    found, xp = to_device_of(np.asarray(result), like), array_namespace(like)
    # A device may lack float64.
    return xp.astype(found, float_dtype(like), copy=False) if found.dtype == xp.float64 else found
