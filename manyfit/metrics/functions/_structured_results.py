"""Results of metrics that are not one score: what computes them on a device, and how they get there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from manyfit.arrays import array_namespace, float_dtype, is_array, to_device_of, to_host

Array = Any


@dataclass(frozen=True)
class Whole:
    """A metric that gives more than one score, of rows on a device.

    Attributes
    ----------
    form : callable
        ``form(function, y_true, predicted, sample_weight, **options)`` returns what scikit-learn's `function`
        does, with arrays where `predicted` lies; so does `sample_weight`, if it is not None, while `y_true`
        may lie on the host. Array API only, and no shape that depends on data but through numbers that have
        come home. It raises and warns as scikit-learn does.
    home : str
        What comes to the host, for the docstring.
    """

    form: Callable[..., Any]
    home: str

    def __call__(
        self, function: Callable[..., Any], y_true: Any, predicted: Array, sample_weight: Any, **options: Any
    ) -> Any:
        """What `function` gives, where the predictions lie.

        Raises
        ------
        Unsupported
            If it is not done there.
        """
        options = {name: to_host(one) if is_array(one) else one for name, one in options.items()}
        lengths = {array.shape[:1] for array in (y_true, predicted, sample_weight) if array is not None}
        if len(lengths) > 1 or lengths & {(), (0,)}:
            # Of what is empty all is known, and of wrong shapes scikit-learn tells no more than these.
            blank = [np.broadcast_to(np.int64(1), array.shape) for array in (y_true, predicted)]
            if sample_weight is not None:
                options["sample_weight"] = np.broadcast_to(1.0, sample_weight.shape)
            found = function(*blank, **options)
            check_consistent_length(y_true, predicted, sample_weight)
            return put(found, predicted)
        return self.form(function, y_true, predicted, to_device_of(sample_weight, predicted), **options)


def put(result: Any, like: Array) -> Any:
    """Arrays and numbers from the host as arrays where another one lies; texts, dicts and None stay."""
    if isinstance(result, tuple | list):
        return tuple(put(one, like) for one in result)
    if result is None or isinstance(result, str | dict):
        return result
    found, xp = to_device_of(np.asarray(result), like), array_namespace(like)
    # A device may have no numbers of double precision.
    return xp.astype(found, float_dtype(like), copy=False) if found.dtype == xp.float64 else found
