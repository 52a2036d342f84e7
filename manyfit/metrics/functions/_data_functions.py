"""Functions of data, rather than of predictions: where each of scikit-learn's is computed on a device."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    pairwise_distances_chunked,
    silhouette_samples,
    silhouette_score,
)

from manyfit._compat import check_metric_options
from manyfit.arrays import is_array, is_on_device
from manyfit.metrics.clustering._dispersion import calinski_harabasz, davies_bouldin
from manyfit.metrics.clustering._silhouette import silhouette_scores, silhouettes
from manyfit.metrics.distances._chunked import chunks_of
from manyfit.metrics.distances._functions import PAIR_FUNCTIONS
from manyfit.metrics.distances._paired import PAIRED_FUNCTIONS

Array = Any

# What scikit-learn's constraints would take for arrays of the host.
ARRAYS = ("X", "Y", "labels", "X_norm_squared", "Y_norm_squared")

Form = Callable[..., Any]


def _of_device(function: Callable[..., Any], kernel: Callable[..., Any]) -> Form:
    """Scikit-learn's function of arguments of which one lies on a device, beside which the result is.

    ``kernel(there, **arguments)`` has them by name, those that the function hands on among them, checked.
    """
    signature = inspect.signature(function)

    def form(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        there = next(filter(is_on_device, (*args, *kwargs.values())))
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                arguments |= arguments.pop(name, {})
        check_metric_options(function, {name: v for name, v in arguments.items() if name not in ARRAYS})
        return kernel(there, **arguments)

    return form


def _of_clusterings(function: Callable[..., Any], kernel: Callable[..., Array]) -> tuple[Form, Form]:
    """A score of clusterings, of the labels of one setting on a device and of many."""
    parameters, name = inspect.signature(function).parameters, getattr(function, "__name__", "")
    hands_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())

    def one(there: Array, X: Any, labels: Any, **options: Any) -> Array:
        labels = labels if is_array(labels) else np.asarray(labels)
        return kernel(there, X, labels[None, ...], **options)[0, ...]

    def many(X: Any, labels: Any, *, max_bytes: int | None = None, **options: Any) -> Array:
        """Scores of the labels of m settings, (m, n), for one X, host or device: where X lies, or the labels.

        NaN where scikit-learn refuses the labels of a setting for their number.
        """
        strange = set() if hands_on else set(options) - set(parameters)
        if strange:
            raise TypeError(f"{name}.many got an unexpected keyword argument {min(strange)!r}")
        check_metric_options(function, options)
        X, labels = (data if is_array(data) else np.asarray(data) for data in (X, labels))
        if labels.ndim != 2:
            raise ValueError(
                f"{name}.many needs labels of shape (n_settings, n_samples), got {tuple(labels.shape)}. "
                f"Call {name} for those of one setting."
            )
        if max_bytes is not None and not max_bytes > 0:
            raise ValueError(f"{name}.many needs max_bytes above 0, got {max_bytes!r}.")
        there = next(filter(is_on_device, (X, labels)), X)
        return kernel(there, X, labels, alone=False, max_bytes=max_bytes, **options)

    return _of_device(function, one), many


# Of each function the form that takes arrays on a device, and that which takes many settings, or None.
OF_DATA: dict[Callable[..., Any], tuple[Form, Form | None]] = {
    **{f: (_of_device(f, kernel), None) for f, kernel in (PAIR_FUNCTIONS | PAIRED_FUNCTIONS).items()},
    pairwise_distances_chunked: (_of_device(pairwise_distances_chunked, chunks_of), None),
    **{
        function: _of_clusterings(function, kernel)
        for function, kernel in {
            calinski_harabasz_score: calinski_harabasz,
            davies_bouldin_score: davies_bouldin,
            silhouette_samples: silhouettes,
            silhouette_score: silhouette_scores,
        }.items()
    },
}
