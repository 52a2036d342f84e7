"""Functions of data rather than predictions: pairwise distances and scores of clusterings."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_samples,
    silhouette_score,
)

from manyfit._compat import check_metric_options
from manyfit.arrays import is_array, is_on_device
from manyfit.metrics.clustering._dispersion import calinski_harabasz, davies_bouldin
from manyfit.metrics.clustering._silhouette import silhouette_scores, silhouettes
from manyfit.metrics.distances._functions import PAIR_FUNCTIONS

Array = Any

# Arguments that scikit-learn's constraints would read as host arrays.
ARRAYS = ("X", "Y", "labels", "X_norm_squared", "Y_norm_squared")

Form = Callable[..., Any]
_signature = cache(inspect.signature)  # which takes longer than many a metric


def _device_form(function: Callable[..., Any], kernel: Callable[..., Any]) -> Form:
    """scikit-learn's function for arguments of which one is on a device, where the result is computed.

    ``kernel(like, **arguments)`` receives checked arguments by name.
    """
    signature = _signature(function)

    def form(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        like = next(filter(is_on_device, (*args, *kwargs.values())))
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                arguments |= arguments.pop(name, {})
        check_metric_options(function, {name: v for name, v in arguments.items() if name not in ARRAYS})
        return kernel(like, **arguments)

    return form


def check_many_options(function: Callable[..., Any], options: dict[str, Any], max_bytes: int | None) -> str:
    """The function's name, after the checks that Python and scikit-learn make of the options of ``.many``."""
    name: str = getattr(function, "__name__")  # noqa: B009
    try:
        _signature(function).bind(None, None, **options)
    except TypeError as error:
        text = str(error).replace("missing", "is missing").replace("multiple", "got multiple")
        raise TypeError(f"{name}.many {text}") from None
    check_metric_options(function, options)
    if max_bytes is not None and not max_bytes > 0:
        raise ValueError(f"{name}.many needs max_bytes above 0, got {max_bytes!r}.")
    return name


def _clustering_forms(function: Callable[..., Any], kernel: Callable[..., Array]) -> tuple[Form, Form]:
    """A score of clusterings for the labels of one setting on a device, and for those of many settings."""

    def one(like: Array, X: Any, labels: Any, **options: Any) -> Array:
        labels = labels if is_array(labels) else np.asarray(labels)
        return kernel(like, X, labels[None, ...], **options)[0, ...]

    def many(X: Any, labels: Any, *, max_bytes: int | None = None, **options: Any) -> Array:
        """Scores for the labels of m settings, (m, n), and one X, on the device where X or the labels are.

        NaN for a setting whose number of labels scikit-learn refuses.
        """
        name = check_many_options(function, options, max_bytes)
        X, labels = (data if is_array(data) else np.asarray(data) for data in (X, labels))
        if labels.ndim != 2:
            raise ValueError(
                f"{name}.many needs labels of shape (n_settings, n_samples), got {tuple(labels.shape)}. "
                f"Call {name} for those of one setting."
            )
        like = next(filter(is_on_device, (X, labels)), X)
        return kernel(like, X, labels, one_setting=False, max_bytes=max_bytes, **options)

    return _device_form(function, one), many


# By function: the form for arrays on a device, and the form for many settings or None.
DATA_FUNCTIONS: dict[Callable[..., Any], tuple[Form, Form | None]] = {
    **{function: (_device_form(function, kernel), None) for function, kernel in PAIR_FUNCTIONS.items()},
    **{
        function: _clustering_forms(function, kernel)
        for function, kernel in {
            calinski_harabasz_score: calinski_harabasz,
            davies_bouldin_score: davies_bouldin,
            silhouette_samples: silhouettes,
            silhouette_score: silhouette_scores,
        }.items()
    },
}
