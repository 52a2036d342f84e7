"""scikit-learn's scorers with metrics that work wherever predictions lie."""

import inspect
import math
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any

from sklearn import metrics
from sklearn.metrics import get_scorer_names

from manyfit._compat import map_scorers, replace_metric, scorer_parts
from manyfit.arrays import is_on_device, to_host, to_host_once
from manyfit.metrics.functions.wrapper import FUNCTIONS

__all__ = [
    "check_scoring",
    "get_scorer",
    "get_scorer_names",
    "make_scorer",
    "refuse_metrics",
    "scikit_learns",
    "scores_on_host",
]

# Kept here: who replaces names in scikit-learn by ours would have them call themselves.
_get_scorer, _make_scorer, _check_scoring = metrics.get_scorer, metrics.make_scorer, metrics.check_scoring
# From scikit-learn's functions to ours, and back.
_THEIRS: dict[Callable[..., Any], Callable[..., Any]] = {
    f: vars(f)["__wrapped__"] for f in FUNCTIONS.values()
}
_OURS = {theirs: ours for ours, theirs in _THEIRS.items()}


def get_scorer(scoring: Any) -> Any:
    """Get a scorer by name, or of scikit-learn's, that scores predictions where they lie.

    Parameters
    ----------
    scoring : str, callable or None
        A name of `get_scorer_names`, or a scorer. Any other callable, and None, are returned as they are.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``: scikit-learn's scorer with our metric in place of
        its own, so that scores of arrays on a device are 0-d arrays there. On the host it is the same.

    Raises
    ------
    ValueError
        If there is no scorer of that name.
    """
    scorer = _get_scorer(scoring)
    found = scorer_parts(scorer)
    if found is None or found[0] not in _OURS:
        return scorer
    return replace_metric(scorer, _OURS[found[0]])


def make_scorer(
    score_func: Callable[..., Any],
    *,
    response_method: Any = "predict",
    greater_is_better: bool = True,
    **kwargs: Any,
) -> Any:
    """Make a scorer of a metric, as scikit-learn does; of one of its metrics, one that works on a device.

    Parameters
    ----------
    score_func : callable
        ``score_func(y_true, y_pred, **kwargs)``.
    response_method : str or sequence of str, default="predict"
        Methods of the estimator that say what is scored; the first that it has.
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
        _OURS.get(score_func, score_func),
        response_method=response_method,
        greater_is_better=greater_is_better,
        **kwargs,
    )


def check_scoring(
    estimator: Any = None, scoring: Any = None, *, allow_none: bool = False, raise_exc: bool = True
) -> Any:
    """Determine the scorer that is meant, as scikit-learn does, with metrics that work on a device.

    Parameters
    ----------
    estimator : estimator, optional
        What is to be scored; where `scoring` is None, its ``score`` is the scorer.
    scoring : str, callable, list, tuple, set, dict or None
        As in scikit-learn's searches.
    allow_none : bool, default=False
        Whether to return None where neither `scoring` nor a ``score`` is there.
    raise_exc : bool, default=True
        Whether one of several scorers that fails raises; else its score is a text.

    Returns
    -------
    callable or None
        scikit-learn's scorer; those made of its metrics are as `get_scorer` gives them.

    Raises
    ------
    ValueError
        If a metric is given in place of a scorer, or as scikit-learn does.
    TypeError
        If there is nothing to score by.
    """
    refuse_metrics(scoring)
    found = _check_scoring(estimator, scoring, allow_none=allow_none, raise_exc=raise_exc)
    return found if found is None else map_scorers(found, get_scorer)


class _HomeMetric:
    """A metric whose scores come to the host."""

    def __init__(self, metric: Callable[..., Any]) -> None:
        update_wrapper(self, metric)
        self.metric = metric

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        score = self.metric(*args, **kwargs)
        if not is_on_device(score):
            return score
        score, theirs = float(to_host(score)), _THEIRS.get(self.metric)
        if theirs is not None and math.isnan(score):
            # What scikit-learn refuses or warns of is NaN there; here it says so itself.
            home = {name: to_host_once(value) for name, value in kwargs.items()}
            return theirs(*map(to_host_once, args), **home)
        return score


def scores_on_host(scorer: Any) -> Any:
    """A scorer for searches, which need numbers: not every library's arrays of no dimension count as such.

    Parameters
    ----------
    scorer : callable
        A scorer, or scikit-learn's bundle of several.

    Returns
    -------
    callable
        The same; scores by ours and other metrics that lie on a device are brought to the host.
    """

    def one(scorer: Any) -> Any:
        found = scorer_parts(scorer)
        return scorer if found is None else replace_metric(scorer, _HomeMetric(found[0]))

    return map_scorers(scorer, one)


def refuse_metrics(scoring: Any) -> None:
    """Refuse a metric of ours in place of a scorer, as scikit-learn refuses its own.

    Parameters
    ----------
    scoring : object
        What a search is given; looked at is a callable, or each in a dict.

    Raises
    ------
    ValueError
        If one of them is a function of `manyfit.metrics`.
    """
    for one in scoring.values() if isinstance(scoring, Mapping) else (scoring,):
        # Those of `.many` are in these modules too.
        if inspect.isfunction(one) and one.__module__ in ("manyfit.metrics", "manyfit.metrics.pairwise"):
            raise ValueError(
                f"scoring value {one!r} looks like it is a metric function rather than a scorer. A scorer "
                "should require an estimator as its first parameter. Please use `make_scorer` of "
                "manyfit.metrics to convert a metric to a scorer."
            )


def scikit_learns(function: Callable[..., Any]) -> Callable[..., Any]:
    """scikit-learn's metric behind one of ours; any other is its own."""
    if isinstance(function, _HomeMetric):
        function = function.metric
    return _THEIRS.get(function, function)
