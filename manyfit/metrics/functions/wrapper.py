"""scikit-learn's metric functions: its own on the host, ours on a device and for many settings."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import sklearn
import sklearn.metrics

from manyfit._compat import check_metric_options, scorer_parts
from manyfit.arrays import array_namespace, is_array, is_on_device, to_device_of, to_host_once
from manyfit.folds import Unsupported
from manyfit.metrics.functions._data_functions import OF_DATA
from manyfit.metrics.functions._registry import MANY, WHOLE
from manyfit.metrics.functions._structured_results import Whole
from manyfit.metrics.kernels._kernel import MetricKernel

Array = Any

# What scikit-learn has under sklearn.metrics that is not a function of arrays.
NOT_METRICS = ("check_scoring", "get_scorer", "get_scorer_names", "make_scorer")

# For metrics that only scorers of scikit-learn have.
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
# What stands in the docstrings behind scikit-learn's first sentence.
SAME = "Where no argument lies on a device, this is scikit-learn's own function. "
COMPUTED = """Where one does, the others are
brought beside it and the score is computed there: a 0-d array, which ``float()`` brings to the host. Labels
are looked for there, for which the host waits twice, and for integer scores of 64 bits once, for whether
floats tell them apart; nothing else makes it wait. What scikit-learn raises or warns of because of values is
NaN, or the value that it gives beside its warning. What is not done so is left to scikit-learn, called with
``array_api_dispatch=True``."""
COMPUTED_OF_DATA = """Where one does, the others
are brought beside it, and the result is computed and stays there, in blocks, so that what is in memory beside
it is bounded; scores are 0-d arrays. The host waits once, to learn whether scikit-learn's errors are to be
raised (``sklearn.set_config(assume_finite=True)`` spares what it can), and brings no data home. Floats are of
the precision of the data. What is not done so is left to scikit-learn, called with
``array_api_dispatch=True``."""
NOT_ONE_SCORE = """Where one does,
the others are brought beside the predictions (the second argument) and the result is computed there; its
arrays and numbers lie there. To the host come {}, and nothing bulky. What scikit-learn raises
or warns of, it does here. What is not done so is left to scikit-learn, called with
``array_api_dispatch=True``."""
DISPATCHED = """Where one does, it is
called with ``array_api_dispatch=True``, and does there what it can."""


# What is done with arguments of which one lies on a device, or with those of many settings, or Unsupported.
Form = Callable[..., Any]


def metric_function(
    function: Callable[..., Any],
    form: Form | None,
    many: Form | None,
    *,
    text: str = DISPATCHED,
    module: str = "manyfit.metrics",
) -> Callable[..., Any]:
    """One of scikit-learn's metric functions, of arrays wherever they lie.

    Parameters
    ----------
    function : callable
        scikit-learn's.
    form : callable or None
        ``form(*args, **kwargs)``: the same of arguments of which one lies on a device.
    many : callable or None
        The same of many settings, on host or device, with a docstring.
    text : str
        What is said of arrays on a device.
    module : str
        Where the function is found by its name.

    Returns
    -------
    callable
        With the signature of `function`, and an attribute ``many``, which is `many` or None.
    """
    name = function.__name__

    @wraps(function)
    def metric(*args: Any, **kwargs: Any) -> Any:
        if not any(is_on_device(value) for value in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        why: Any = "it has no form of its own"
        if form is not None:
            try:
                return form(*args, **kwargs)
            except Unsupported as error:
                why = error
        try:
            with sklearn.config_context(array_api_dispatch=True):
                return function(*args, **kwargs)
        except Exception as error:
            error.add_note(
                f"manyfit.metrics.{name} of arrays on a device was left to scikit-learn: {why}. "
                "Of what it cannot do there, bring the arrays to the host with manyfit.arrays.to_host."
            )
            raise

    # What is pickled is the name under which it is found again.
    metric.__module__ = module
    metric.many = None if many is None else _or_advice(name, many, module)  # type: ignore[attr-defined]
    described = inspect.getdoc(function) or UNDOCUMENTED.format(name.replace("_", " "))
    summary, _, rest = described.partition("\n\n")
    metric.__doc__ = f"{summary}\n\n{SAME}{text}\n\n{rest}"
    return metric


def _or_advice(name: str, many: Form, module: str) -> Form:
    """What takes many settings, with advice where one of its options is not supported."""

    @wraps(many)
    def of_many(*args: Any, **kwargs: Any) -> Any:
        try:
            return many(*args, **kwargs)
        except Unsupported as why:
            raise NotImplementedError(
                f"{name}.many does not do this: {why}. Call {name} for one setting at a time."
            ) from None

    of_many.__module__, of_many.__name__, of_many.__qualname__ = module, "many", f"{name}.many"
    return of_many


def _of_one(function: Callable[..., Any], many: MetricKernel | None, whole: Whole | None) -> Form:
    """A function of predictions of one setting on a device: `whole`, or one score of `many`."""
    signature = inspect.signature(function)
    first = list(signature.parameters)[:2]
    defaults = {name: p.default for name, p in signature.parameters.items() if name not in first}

    def form(*args: Any, **kwargs: Any) -> Any:
        options = dict(signature.bind(*args, **kwargs).arguments)
        y_true, predicted = (options.pop(name) for name in first)
        y_true, predicted = map(_as_array, (y_true, predicted))
        if not is_on_device(predicted) and predicted.dtype.kind not in "biufc":
            # Texts, which no device holds; as a rule both are, and only weights lie there.
            home = {name: to_host_once(one) for name, one in options.items()}
            return function(*map(to_host_once, (y_true, predicted)), **home)
        there = next(filter(is_on_device, (predicted, y_true, *options.values())))
        predicted, y_true = _column(to_device_of(predicted, there)), _column(y_true)
        if whole is not None:
            return _whole(function, whole, y_true, predicted, **{**defaults, **options})
        assert many is not None
        return _checked(function, many, y_true, predicted[None, ...], **options)[0, ...]

    return form


def _of_many(function: Callable[..., Any], many: MetricKernel) -> Form:
    """A metric of the predictions of many settings, on host or device."""

    def of_many(
        y_true: Any,
        predictions: Any,
        *,
        sample_weight: Any = None,
        max_bytes: int | None = None,
        **options: Any,
    ) -> Array:
        """Scores of the predictions of m settings, host or device: m of them, where the predictions lie."""
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
    name: str = getattr(function, "__name__")  # noqa: B009
    strange = set(options) - set(inspect.signature(function).parameters)
    if strange:
        raise TypeError(f"{name}.many got an unexpected keyword argument {min(strange)!r}")
    for parameter in inspect.signature(function).parameters.values():
        required = parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
        if required and parameter.name not in options:
            raise TypeError(f"{name}.many is missing a required argument: {parameter.name!r}")
    check_metric_options(function, options)
    sample_weight = _as_array(sample_weight)
    if predictions.ndim < 2:
        raise ValueError(
            f"{name}.many needs predictions of shape (n_settings, n_samples) or with one axis more, got "
            f"{predictions.shape}. Call {name} for those of one setting."
        )
    n = y_true.shape[0]
    if predictions.shape[1] != n or (sample_weight is not None and sample_weight.shape != (n,)):
        found = [n, predictions.shape[1]] + ([] if sample_weight is None else [sample_weight.shape[0]])
        raise ValueError(f"{name}: Found input variables with inconsistent numbers of samples: {found}")
    if n == 0:
        raise ValueError(f"{name}: Found array with 0 sample(s) while a minimum of 1 is required.")
    if max_bytes is not None and not max_bytes > 0:
        raise ValueError(f"{name}.many needs max_bytes above 0, got {max_bytes!r}.")
    return many(y_true, predictions, sample_weight=sample_weight, max_bytes=max_bytes, **options)


def _whole(
    function: Callable[..., Any],
    whole: Whole,
    y_true: Array,
    predicted: Array,
    *,
    sample_weight: Any = None,
    **options: Any,
) -> Any:
    check_metric_options(function, options)
    return whole(function, y_true, predicted, _as_array(sample_weight), **options)


def _as_array(value: Any) -> Any:
    return value if value is None or is_array(value) else np.asarray(value)


def _column(array: Array) -> Array:
    """A column as scikit-learn takes it, without its second axis."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array_namespace(array).reshape(array, (-1,))
    return array


def made(function: Callable[..., Any], module: str = "manyfit.metrics") -> Callable[..., Any]:
    """`metric_function` of one of scikit-learn's, with the forms that there are of it."""
    if function in OF_DATA:
        return metric_function(function, *OF_DATA[function], text=COMPUTED_OF_DATA, module=module)
    many, whole = MANY.get(function), WHOLE.get(function)
    if many is None and whole is None:
        return metric_function(function, None, None, module=module)
    of_many = None if many is None else _of_many(function, many)
    text = COMPUTED if whole is None else NOT_ONE_SCORE.format(whole.home)
    return metric_function(function, _of_one(function, many, whole), of_many, text=text, module=module)


def _all() -> dict[str, Callable[..., Any]]:
    public: list[Callable[..., Any]] = [
        function
        for name, function in vars(sklearn.metrics).items()
        if name in sklearn.metrics.__all__ and name not in NOT_METRICS and inspect.isfunction(function)
    ]
    scorers = [scorer_parts(sklearn.metrics.get_scorer(name)) for name in sklearn.metrics.get_scorer_names()]
    # Two scorers have metrics that are not public.
    of_scorers = [scorer[0] for scorer in scorers if scorer is not None]
    functions: dict[str, Any] = {f.__name__: f for f in [*public, *of_scorers]}
    return {name: made(f) for name, f in functions.items()}


FUNCTIONS = _all()
