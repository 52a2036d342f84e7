"""scikit-learn's metric functions: its own on the host, ours on a device and for many settings."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import sklearn
import sklearn.metrics

from manyfit._compat import check_metric_options, plain_scorer
from manyfit.arrays import array_namespace, is_array, on_device
from manyfit.folds import Unsupported
from manyfit.metrics._many import Many, beside
from manyfit.metrics._registry import MANY, WHOLE
from manyfit.metrics._whole import Whole

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
are looked for there, for which the host waits twice; nothing else makes it wait. What scikit-learn raises or
warns of because of values is NaN, or the value that it gives beside its warning. What is not done so is left
to scikit-learn, called with ``array_api_dispatch=True``."""
NOT_ONE_SCORE = """Where one does,
the others are brought beside the predictions (the second argument) and the result is computed there; its
arrays and numbers lie there. To the host come {}, and nothing bulky. What scikit-learn raises
or warns of, it does here. What is not done so is left to scikit-learn, called with
``array_api_dispatch=True``."""
DISPATCHED = """Where one does, it is
called with ``array_api_dispatch=True``, and does there what it can."""


def metric_function(
    function: Callable[..., Any], many: Many | None, whole: Whole | None = None
) -> Callable[..., Any]:
    """One of scikit-learn's metric functions, of arrays wherever they lie.

    Parameters
    ----------
    function : callable
        scikit-learn's.
    many : Many or None
        The same of many settings; None where there is none.
    whole : Whole, optional
        What computes its result on a device, where that is not one score.

    Returns
    -------
    callable
        With the signature of `function`, and an attribute ``many``: None, or a callable
        ``many(y_true, predictions, *, sample_weight=None, max_bytes=None, **options)`` that takes predictions
        of m settings, host or device, and returns m scores where they lie.
    """
    signature = inspect.signature(function)
    first = list(signature.parameters)[:2]
    defaults = {name: p.default for name, p in signature.parameters.items() if name not in first}

    @wraps(function)
    def metric(*args: Any, **kwargs: Any) -> Any:
        if not any(on_device(value) for value in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        why: Any = "it has no form of its own"
        if many is not None or whole is not None:
            options = dict(signature.bind(*args, **kwargs).arguments)
            y_true, predicted = (options.pop(name) for name in first)
            there = next(filter(on_device, (predicted, y_true, *options.values())))
            predicted = _column(beside(_as_array(predicted), there))
            y_true = _column(_as_array(y_true))
            try:
                if whole is not None:
                    return _whole(function, whole, y_true, predicted, **{**defaults, **options})
                if many is not None:
                    return _checked(function, many, y_true, predicted[None, ...], **options)[0, ...]
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

    def of_many(
        y_true: Any,
        predictions: Any,
        *,
        sample_weight: Any = None,
        max_bytes: int | None = None,
        **options: Any,
    ) -> Array:
        """See `many`."""
        assert many is not None
        options |= {"sample_weight": sample_weight, "max_bytes": max_bytes}
        try:
            return _checked(function, many, _column(_as_array(y_true)), _as_array(predictions), **options)
        except Unsupported as why:
            raise NotImplementedError(
                f"{name}.many does not do this: {why}. Call {name} for one setting at a time."
            ) from None

    name = function.__name__
    # What is pickled is the name under which it is found again.
    metric.__module__ = of_many.__module__ = "manyfit.metrics"
    metric.many = of_many if many is not None else None  # type: ignore[attr-defined]
    of_many.__qualname__ = f"{name}.many"
    summary, _, rest = (inspect.getdoc(function) or UNDOCUMENTED.format(name.replace("_", " "))).partition(
        "\n\n"
    )
    how = DISPATCHED if many is None else COMPUTED
    how = how if whole is None else NOT_ONE_SCORE.format(whole.home)
    metric.__doc__ = f"{summary}\n\n{SAME}{how}\n\n{rest}"
    return metric


def _checked(
    function: Callable[..., Any],
    many: Many,
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


def _all() -> dict[str, Callable[..., Any]]:
    public: list[Callable[..., Any]] = [
        function
        for name, function in vars(sklearn.metrics).items()
        if name in sklearn.metrics.__all__ and name not in NOT_METRICS and inspect.isfunction(function)
    ]
    scorers = [plain_scorer(sklearn.metrics.get_scorer(name)) for name in sklearn.metrics.get_scorer_names()]
    # Two scorers have metrics that are not public.
    of_scorers = [scorer[0] for scorer in scorers if scorer is not None]
    functions: dict[str, Any] = {f.__name__: f for f in [*public, *of_scorers]}
    return {name: metric_function(f, MANY.get(f), WHOLE.get(f)) for name, f in functions.items()}


FUNCTIONS = _all()
