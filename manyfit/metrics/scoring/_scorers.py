"""scikit-learn's scorers with metrics that compute on the device of the predictions."""

import copy
import inspect
import math
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any

from sklearn import metrics
from sklearn.pipeline import Pipeline

from manyfit._compat import map_scorers, replace_metric, scorer_parts
from manyfit.arrays import array_of_frame, is_on_device, to_host, to_host_once
from manyfit.introspection.class_names import imported

# Kept under own names: if a user replaces scikit-learn's by ours, they must not call themselves.
_get_scorer, _make_scorer, _check_scoring = metrics.get_scorer, metrics.make_scorer, metrics.check_scoring


def _ours(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Our metric for scikit-learn's, or None."""
    from manyfit.metrics.functions.wrapper import FUNCTIONS  # searches on the host do without

    found = FUNCTIONS.get(getattr(function, "__name__", ""))
    return found if found is not None and _theirs(found) is function else None


def _theirs(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """scikit-learn's metric behind one of ours, or None."""
    functions = imported("manyfit.metrics.functions.wrapper.FUNCTIONS") or {}
    known = functions.get(getattr(function, "__name__", ""))
    theirs: Callable[..., Any] | None = vars(function)["__wrapped__"] if known is function else None
    return theirs


def get_scorer(scoring: Any) -> Any:
    """Get a scorer by name, or from scikit-learn's scorer, that scores predictions on their device.

    Parameters
    ----------
    scoring : str, callable or None
        A name of `get_scorer_names`, or a scorer. Any other callable, and None, are returned unchanged.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``: scikit-learn's scorer with manyfit's metric. The
        score of arrays on a device is a 0-d array on that device; on the host nothing changes.

    Raises
    ------
    ValueError
        If no scorer has that name.
    """
    scorer = _get_scorer(scoring)
    found = scorer_parts(scorer)
    ours = None if found is None else _ours(found[0])
    return scorer if ours is None else replace_metric(scorer, ours, with_host_classes)


def make_scorer(
    score_func: Callable[..., Any],
    *,
    response_method: Any = "predict",
    greater_is_better: bool = True,
    **kwargs: Any,
) -> Any:
    """Make a scorer from a metric, as scikit-learn does; its own metrics also score arrays on a device.

    Parameters
    ----------
    score_func : callable
        ``score_func(y_true, y_pred, **kwargs)``.
    response_method : str or sequence of str, default="predict"
        Method of the estimator whose response is scored; of several, the first one that it has.
    greater_is_better : bool, default=True
        Whether higher is better; else the score is multiplied by -1.
    **kwargs : dict
        Further arguments of `score_func`.

    Returns
    -------
    callable
        scikit-learn's scorer.
    """
    return _make_scorer(
        _ours(score_func) or score_func,
        response_method=response_method,
        greater_is_better=greater_is_better,
        **kwargs,
    )


def check_scoring(
    estimator: Any = None, scoring: Any = None, *, allow_none: bool = False, raise_exc: bool = True
) -> Any:
    """Determine the scorer, as scikit-learn does, with metrics that compute on a device.

    Parameters
    ----------
    estimator : estimator, optional
        The estimator to score; its ``score`` is the scorer if `scoring` is None.
    scoring : str, callable, list, tuple, set, dict or None
        As in scikit-learn's searches.
    allow_none : bool, default=False
        Whether to return None if neither `scoring` nor a ``score`` exists.
    raise_exc : bool, default=True
        Whether a failure of one of several scorers raises; else its score is the text of the error.

    Returns
    -------
    callable or None
        scikit-learn's scorer, in which its metrics are replaced as by `get_scorer`.

    Raises
    ------
    ValueError
        If a metric is given in place of a scorer, or as scikit-learn does.
    TypeError
        If the estimator has no ``score`` and `scoring` is None.
    """
    refuse_metrics(scoring)
    found = _check_scoring(estimator, scoring, allow_none=allow_none, raise_exc=raise_exc)
    return found if found is None else map_scorers(found, get_scorer)


class _HostScoreMetric:
    """A metric whose scores are numbers on the host."""

    def __init__(self, metric: Callable[..., Any]) -> None:
        update_wrapper(self, metric)
        self.metric = metric

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(array_of_frame, args))
        score = self.metric(*args, **kwargs)
        if not is_on_device(score):
            return score
        score, theirs = float(to_host(score)), _theirs(self.metric)
        if theirs is not None and math.isnan(score):
            # NaN on a device: on the host, scikit-learn raises or warns itself.
            options = {name: to_host_once(value) for name, value in kwargs.items()}
            return theirs(*map(to_host_once, args), **options)
        return score


def with_host_classes(estimator: Any, response_method: str = "predict_proba") -> Any:
    """The estimator that gives a scorer its predictions: one whose classes the host can read.

    scikit-learn chooses a column of ``predict_proba`` with NumPy, which reads no classes of torch on a GPU.
    """
    if response_method != "predict_proba":
        return estimator
    if isinstance(estimator, Pipeline):
        *steps, (name, last) = estimator.steps
        found = with_host_classes(last)
        return estimator if found is last else _copied(estimator, steps=[*steps, (name, found)])
    classes = getattr(estimator, "__dict__", {}).get("classes_")
    return _copied(estimator, classes_=to_host(classes)) if is_on_device(classes) else estimator


def _copied(estimator: Any, **attributes: Any) -> Any:
    copied = copy.copy(estimator)
    vars(copied).update(attributes)
    return copied


def scores_on_host(scorer: Any) -> Any:
    """A scorer, or a bundle of several, whose metrics return numbers on the host, as searches need them."""

    def one(scorer: Any) -> Any:
        found = scorer_parts(scorer)
        return (
            scorer if found is None else replace_metric(scorer, _HostScoreMetric(found[0]), with_host_classes)
        )

    return map_scorers(scorer, one)


def refuse_metrics(scoring: Any) -> None:
    """Raise ValueError for a metric of ours in place of a scorer, as scikit-learn does for its own."""
    for one in scoring.values() if isinstance(scoring, Mapping) else (scoring,):
        # Functions `.many` are in these modules, too.
        if inspect.isfunction(one) and one.__module__ in ("manyfit.metrics", "manyfit.metrics.pairwise"):
            raise ValueError(
                f"scoring value {one!r} looks like it is a metric function rather than a scorer. A scorer "
                "should require an estimator as its first parameter. Please use `make_scorer` of "
                "manyfit.metrics to convert a metric to a scorer."
            )


def sklearn_metric_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """scikit-learn's metric behind one of ours; any other metric itself."""
    if isinstance(function, _HostScoreMetric):
        function = function.metric
    return _theirs(function) or function
