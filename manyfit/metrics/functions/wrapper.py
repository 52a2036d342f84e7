"""scikit-learn's metric functions: its own on the host, ours on a device and for many settings."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import sklearn
import sklearn.metrics

from manyfit._compat import check_metric_options, negative_likelihood_ratio, positive_likelihood_ratio
from manyfit.arrays import (
    array_namespace,
    array_of_frame,
    is_array,
    is_device_frame,
    is_on_device,
    to_device_of,
    to_host_once,
)
from manyfit.folds import Unsupported
from manyfit.metrics.functions._data_functions import DATA_FUNCTIONS, check_many_options
from manyfit.metrics.functions._registry import METRIC_KERNELS, STRUCTURED_METRICS
from manyfit.metrics.functions._structured_results import StructuredMetric
from manyfit.metrics.kernels._kernel import MetricKernel

Array = Any

# Functions of sklearn.metrics that take no arrays.
NOT_METRICS = ("check_scoring", "get_scorer", "get_scorer_names", "make_scorer")

# For metrics that only scikit-learn's scorers have.
UNDOCUMENTED = """Compute the {}.

Parameters
----------
y_true : array-like of shape (n_samples,)
    Ground truth (correct) target values.
y_pred : array-like of shape (n_samples,)
    Predicted labels.

Returns
-------
float
    The score.
"""
# Inserted into docstrings behind scikit-learn's first sentence.
SAME = "If no argument is on a device, this is scikit-learn's own function."
COMPUTED = """If one is, the others are copied to its device, and the score is a 0-d array on it, which
``float()`` reads. {}
Where scikit-learn raises or warns because of values, the score is NaN, or the value that comes with the
warning. Arguments that this function does not support are left to scikit-learn, which is called with
``array_api_dispatch=True``."""
OF_NUMBERS = "The host waits for nothing."
OF_CLASSES = """The host waits twice to find the labels, and once for 64-bit integer scores, to see
whether floats tell them apart; it waits for nothing else."""
COMPUTED_FROM_DATA = """If one is, the others are copied to its device, where the result is computed, in
blocks that bound the memory beside it; scores are 0-d arrays. The host waits once, to learn whether to
raise scikit-learn's errors (``sklearn.set_config(assume_finite=True)`` omits some checks), and reads no
data. Floats have the precision of the data. Arguments that this function does not support are left to
scikit-learn, which is called with ``array_api_dispatch=True``."""
NOT_ONE_SCORE = """If one is, the others are copied to the device of the predictions (the second argument),
where the arrays and numbers of the result are. The host reads {}, and nothing large. scikit-learn's errors
and warnings are given. Arguments that this function does not support are left to scikit-learn, which is
called with ``array_api_dispatch=True``."""
DISPATCHED = """If one is, it is called with ``array_api_dispatch=True``, and computes on the device what it
can."""


# A function for arguments of which one is on a device, or for many settings; may raise Unsupported.
Form = Callable[..., Any]


def make_metric_function(
    function: Callable[..., Any],
    on_device_form: Form | None,
    many: Form | None,
    *,
    text: str = DISPATCHED,
    module: str = "manyfit.metrics",
) -> Callable[..., Any]:
    """scikit-learn's metric function for arrays on any device, with an attribute ``many`` for many settings.

    ``on_device_form(*args, **kwargs)`` serves arguments of which one is on a device; None: scikit-learn does.
    `text` goes into the docstring, `module` is where pickle finds the function.
    """
    name = function.__name__

    @wraps(function)
    def metric(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_device_frame, (*args, *kwargs.values()))):
            args = tuple(map(array_of_frame, args))
            kwargs = {key: array_of_frame(value) for key, value in kwargs.items()}
        if not any(is_on_device(value) for value in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        why: Any = "manyfit does not implement it"
        if on_device_form is not None:
            try:
                return on_device_form(*args, **kwargs)
            except Unsupported as error:
                why = error
        try:
            with sklearn.config_context(array_api_dispatch=True):
                return function(*args, **kwargs)
        except Exception as error:
            error.add_note(
                f"manyfit.metrics.{name} left arrays on a device to scikit-learn: {why}. If scikit-learn "
                "cannot read them, copy them to the host with manyfit.arrays.to_host."
            )
            raise

    # Pickle stores this name.
    metric.__module__ = module
    metric.many = None if many is None else _with_advice(name, many, module)  # type: ignore[attr-defined]
    described = inspect.getdoc(function) or UNDOCUMENTED.format(name.replace("_", " "))
    summary, _, rest = described.partition("\n\n")
    metric.__doc__ = f"{summary}\n\n{SAME}\n{text}\n\n{rest}"
    return metric


def _with_advice(name: str, many: Form, module: str) -> Form:
    """`many`, whose error for an unsupported option says what to call instead."""

    @wraps(many)
    def of_many(*args: Any, **kwargs: Any) -> Any:
        try:
            return many(*args, **kwargs)
        except Unsupported as why:
            raise NotImplementedError(
                f"{name}.many does not support this: {why}. Call {name} for one setting at a time."
            ) from None

    of_many.__module__, of_many.__name__, of_many.__qualname__ = module, "many", f"{name}.many"
    return of_many


def _one_setting(
    function: Callable[..., Any], many: MetricKernel | None, structured: StructuredMetric | None
) -> Form:
    """A function of the predictions of one setting on a device: `structured`, or one score of `many`."""
    signature = inspect.signature(function)
    first = list(signature.parameters)[:2]
    defaults = {name: p.default for name, p in signature.parameters.items() if name not in first}

    def on_device_form(*args: Any, **kwargs: Any) -> Any:
        options = dict(signature.bind(*args, **kwargs).arguments)
        y_true, predicted = (options.pop(name) for name in first)
        y_true, predicted = map(_as_array, (y_true, predicted))
        if not is_on_device(predicted) and predicted.dtype.kind not in "biufc":
            # No device holds texts: usually only weights are on one.
            options = {name: to_host_once(one) for name, one in options.items()}
            return function(*map(to_host_once, (y_true, predicted)), **options)
        like = next(filter(is_on_device, (predicted, y_true, *options.values())))
        predicted, y_true = _column(to_device_of(predicted, like)), _column(y_true)
        if structured is not None:
            options = {**defaults, **options}
            weight = _as_array(options.pop("sample_weight", None))
            check_metric_options(function, options)
            return structured(function, y_true, predicted, weight, **options)
        assert many is not None
        return _checked(function, many, y_true, predicted[None, ...], **options)[0, ...]

    return on_device_form


def _many_settings(function: Callable[..., Any], many: MetricKernel) -> Form:
    """A metric of the predictions of many settings, on host or device."""

    def of_many(
        y_true: Any,
        predictions: Any,
        *,
        sample_weight: Any = None,
        max_bytes: int | None = None,
        **options: Any,
    ) -> Array:
        """Scores of the predictions of m settings, (m,), on the device of the predictions or on the host."""
        options |= {"sample_weight": sample_weight, "max_bytes": max_bytes}
        return _checked(function, many, _column(_as_array(y_true)), _as_array(predictions), **options)

    return of_many


def _checked(
    function: Callable[..., Any],
    many: MetricKernel,
    y_true: Array,
    predictions: Array,
    *,
    sample_weight: Any = None,
    max_bytes: int | None = None,
    **options: Any,
) -> Array:
    name = check_many_options(function, options, max_bytes)
    sample_weight = _as_array(sample_weight)
    if predictions.ndim < 2:
        raise ValueError(
            f"{name}.many needs predictions of shape (n_settings, n_samples) or with one axis more, got "
            f"{predictions.shape}. Call {name} for the predictions of one setting."
        )
    n = y_true.shape[0]
    if predictions.shape[1] != n or (sample_weight is not None and sample_weight.shape != (n,)):
        found = [n, predictions.shape[1]] + ([] if sample_weight is None else [sample_weight.shape[0]])
        raise ValueError(f"{name}: Found input variables with inconsistent numbers of samples: {found}")
    if n == 0:
        raise ValueError(f"{name}: Found array with 0 sample(s) while a minimum of 1 is required.")
    return many(y_true, predictions, sample_weight=sample_weight, max_bytes=max_bytes, **options)


def _as_array(value: Any) -> Any:
    return value if value is None or is_array(value) else np.asarray(value)


def _column(array: Array) -> Array:
    """A column as scikit-learn takes it, without its second axis."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array_namespace(array).reshape(array, (-1,))
    return array


def wrap_function(function: Callable[..., Any], module: str = "manyfit.metrics") -> Callable[..., Any]:
    """scikit-learn's function with all forms that manyfit has of it."""
    if function in DATA_FUNCTIONS:
        return make_metric_function(
            function, *DATA_FUNCTIONS[function], text=COMPUTED_FROM_DATA, module=module
        )
    many, structured = METRIC_KERNELS.get(function), STRUCTURED_METRICS.get(function)
    if many is None and structured is None:
        return make_metric_function(function, None, None, module=module)
    of_many = None if many is None else _many_settings(function, many)
    if structured is not None:
        text = NOT_ONE_SCORE.format(structured.host_reads)
    else:
        assert many is not None
        text = COMPUTED.format(OF_NUMBERS if many.kind == "numbers" else OF_CLASSES)
    return make_metric_function(
        function, _one_setting(function, many, structured), of_many, text=text, module=module
    )


def _all() -> dict[str, Callable[..., Any]]:
    public: list[Callable[..., Any]] = [
        function
        for name, function in vars(sklearn.metrics).items()
        if name in sklearn.metrics.__all__ and name not in NOT_METRICS and inspect.isfunction(function)
    ]
    # Two scorers have metrics that are not public.
    functions = [*public, positive_likelihood_ratio, negative_likelihood_ratio]
    return {function.__name__: wrap_function(function) for function in functions}


FUNCTIONS = _all()
