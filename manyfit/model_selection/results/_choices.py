"""Ready callables for `refit`: they choose a simpler or a cheaper setting that scores nearly the best."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from manyfit.model_selection.results._simpler import direction, read_folds, simplest, standard_errors

Floats = NDArray[np.float64]
Way = Literal["smaller", "larger"]
_WAYS = get_args(Way)
_MEAN = "mean_test_"


@dataclass(frozen=True, repr=False)
class Choice:
    """A callable for `refit`: the least of some columns among settings that score nearly the best.

    `tolerance`: how far a mean score may be from the best one; None: one standard error of the best setting.
    """

    name: str
    tolerance: float | None
    metric: str | None

    def columns(self, results: Mapping[str, Any], rows: NDArray[np.intp]) -> Floats:
        """What is to be little, (n_settings, n_columns); earlier columns count more."""
        raise NotImplementedError

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """The row of the setting to refit; of a halving search, from its last round."""
        metric = self._metric(cv_results)
        every = np.asarray(cv_results[_MEAN + metric], dtype=float)
        rows = np.arange(len(every))
        if "iter" in cv_results:
            rounds = np.asarray(cv_results["iter"])
            rows = np.flatnonzero(rounds == rounds.max())
        mean = every[rows]
        if np.isnan(mean).all():
            return int(rows[0])
        best = int(np.nanargmax(mean))
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = np.nan_to_num(standard_errors(read_folds(cv_results, metric)[rows])[best])
        columns = self.columns(cv_results, rows)
        return int(rows[simplest(columns, mean, best, float(mean[best] - tolerance))])

    def _metric(self, results: Mapping[str, Any]) -> str:
        known = [key.removeprefix(_MEAN) for key in results if key.startswith(_MEAN)]
        if self.metric is None and len(known) == 1:
            return known[0]
        if self.metric not in known:
            raise ValueError(
                f"{self.name}: metric={self.metric!r} is none of the search's metrics. "
                f"Set metric to one of {', '.join(map(repr, known))}."
            )
        return self.metric

    def __repr__(self) -> str:
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "name"}
        shown = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        return f"{self.name}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class _Simplest(Choice):
    """See `one_standard_error`."""

    simpler: tuple[tuple[str, Way], ...] | None

    def columns(self, results: Mapping[str, Any], rows: NDArray[np.intp]) -> Floats:
        params = [results["params"][row] for row in rows]
        simpler = self._known(params) if self.simpler is None else self.simpler
        if not simpler:  # the one setting has no parameters
            return np.zeros((len(params), 1))
        return np.column_stack([_complexity(self.name, params, name, way) for name, way in simpler])

    def _known(self, params: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, Way], ...]:
        names = dict.fromkeys(name for one in params for name in one)
        varied = [name for name in names if any(one.get(name) != params[0].get(name) for one in params)]
        found = tuple((name, way) for name in varied if (way := direction(name, "auto")) is not None)
        if len(found) == 1 or not varied:
            return found or tuple((name, "smaller") for name in names)[:1]
        which = " and ".join(repr(name) for name, _ in found) if found else "none"
        raise ValueError(
            f"{self.name}: the search varies {', '.join(varied)}; {which} of them {'are' if found else 'is'} "
            "known to make models simpler. Say which count, the most important first, as in "
            f"one_standard_error({dict(found) or {varied[0]: 'larger'}})."
        )


@dataclass(frozen=True, repr=False)
class _Cheapest(Choice):
    """See `cheapest_within`."""

    cost: str | Callable[[Mapping[str, Any]], float]

    def columns(self, results: Mapping[str, Any], rows: NDArray[np.intp]) -> Floats:
        cost, params = self.cost, [results["params"][row] for row in rows]
        if callable(cost):
            return np.array([[float(cost(dict(one)))] for one in params])
        if cost in ("fit_time", "score_time"):
            return np.asarray(results[f"mean_{cost}"], dtype=float)[rows, np.newaxis]
        return _complexity(self.name, params, cost, "smaller")[:, np.newaxis]


def one_standard_error(
    simpler: str | Mapping[str, Way] | None = None, *, metric: str | None = None
) -> Choice:
    """Choose the simplest setting whose mean score is within one standard error of the best one's.

    Parameters
    ----------
    simpler : str, mapping of str to {"smaller", "larger"}, or None, default=None
        The parameters that make models simpler, the most important first, each with the direction in which
        it does, such as ``{"max_depth": "smaller", "min_samples_leaf": "larger"}``. A name alone is a
        parameter whose direction is known, such as "alpha" or "ridge__alpha". None: the one parameter of the
        search with a known direction.
    metric : str or None, default=None
        The metric that decides. None: the only one of the search.

    Returns
    -------
    callable
        For `refit` of a search of manyfit or scikit-learn.

    Raises
    ------
    ValueError
        Of the returned callable: if the parameter or metric is not clear, or a value is not a number.

    Notes
    -----
    The standard error is that of the best setting over its splits; with one split it is 0. Among settings
    that are equally simple the best one is chosen. ``None`` of a parameter such as ``max_depth`` counts as
    no limit. A halving search chooses among the settings of its last round.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, section 3.4.3.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.model_selection import GridSearchCV, one_standard_error
    >>> X, y = load_diabetes(return_X_y=True)
    >>> grid = {"alpha": [0.01, 0.1, 0.3, 1.0]}
    >>> GridSearchCV(Ridge(), grid, refit=one_standard_error("alpha")).fit(X, y).best_params_
    {'alpha': 0.3}
    """
    name = "one_standard_error"
    if isinstance(simpler, str):
        way = direction(simpler, "auto")
        if way is None:
            raise ValueError(
                f"{name}: whether smaller or larger values of {simpler!r} give simpler models is not known. "
                f"Say so, as in one_standard_error({{{simpler!r}: 'larger'}})."
            )
        simpler = {simpler: way}
    if simpler is not None:
        _refuse_results(name, simpler)
        if not (isinstance(simpler, Mapping) and simpler and all(way in _WAYS for way in simpler.values())):
            raise ValueError(
                f"{name}: simpler has to map parameters to 'smaller' or 'larger', got {simpler}."
            )
    return _Simplest(name, None, metric, None if simpler is None else tuple(simpler.items()))


def cheapest_within(
    tolerance: float | None = None,
    cost: str | Callable[[Mapping[str, Any]], float] = "score_time",
    *,
    metric: str | None = None,
) -> Choice:
    """Choose the cheapest setting whose mean score is nearly the best one's.

    Parameters
    ----------
    tolerance : float or None, default=None
        How far below the best mean score a setting may be, in the unit of the score. None: one standard
        error of the best setting.
    cost : {"score_time", "fit_time"}, str or callable, default="score_time"
        The mean time of predictions and scores, or of fits; the name of a parameter whose smaller values are
        cheaper, such as "n_estimators"; or ``cost(params)``, which returns a number.
    metric : str or None, default=None
        The metric that decides. None: the only one of the search.

    Returns
    -------
    callable
        For `refit` of a search of manyfit or scikit-learn.

    Raises
    ------
    ValueError
        If `tolerance` is negative. Of the returned callable: if the metric is not clear, or a value of the
        parameter is not a number.

    Notes
    -----
    The time of fits that share their work is divided evenly among them: where the plan says that fits are
    shared, a parameter tells more than times do. A halving search chooses among the settings of its last
    round.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from manyfit.model_selection import GridSearchCV, cheapest_within
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_estimators": [5, 20, 80]}
    >>> choice = cheapest_within(0.01, "n_estimators")
    >>> search = GridSearchCV(RandomForestClassifier(random_state=0), grid, refit=choice)
    >>> search.fit(X, y).best_params_
    {'n_estimators': 20}
    """
    name = "cheapest_within"
    _refuse_results(name, tolerance)
    if tolerance is not None and not (isinstance(tolerance, numbers.Real) and tolerance >= 0):
        raise ValueError(f"{name}: tolerance has to be 0 or more, or None, got {tolerance!r}.")
    return _Cheapest(name, tolerance, metric, cost)


def _refuse_results(name: str, given: Any) -> None:
    """Refuse the results of a search, which calls a function that was given as `refit` without a call."""
    if isinstance(given, Mapping) and "params" in given:
        raise ValueError(f"{name}: set refit={name}(), with parentheses, not refit={name}.")


def _complexity(who: str, params: Sequence[Mapping[str, Any]], name: str, way: Way) -> Floats:
    """Numbers that are larger for models that are less simple."""
    sign, found = (1.0 if way == "smaller" else -1.0), []
    for one in params:
        if name not in one:
            raise ValueError(f"{who}: a setting lacks the parameter {name!r}; it has {', '.join(one)}.")
        value = np.inf if one[name] is None and way == "smaller" else one[name]
        try:
            found.append(sign * float(value))
        except (TypeError, ValueError):
            raise ValueError(
                f"{who}: {name}={value!r} is not a number, so that it is not known how simple it is."
            ) from None
    return np.array(found)
