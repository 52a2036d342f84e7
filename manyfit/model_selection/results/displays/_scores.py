"""Scores of a fitted search, read from `cv_results_`, and which of its settings a display shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from manyfit.model_selection.results._simpler import read_folds, standard_errors
from manyfit.model_selection.results.displays._parameters import Parameter, read_parameters, value_key

Floats = NDArray[np.float64]
Others = Literal["auto", "best", "all"]
_PREFIX = "mean_test_"
# Groups of these kinds fit each setting; the others fit together, and divide the time evenly.
OWN_FITS = ("one by one", "shared steps")


@dataclass(frozen=True, eq=False)
class SearchScores:
    """Settings of a search and their scores; `candidates` are rows of `cv_results_`, `best` is a position.

    A halving search has a row for each round that a setting took part in: `resource` names what grew.
    """

    name: str
    params: tuple[Mapping[str, Any], ...]
    candidates: NDArray[np.intp]
    mean: Floats
    folds: Floats
    train_folds: Floats | None
    best: int
    resource: str | None = None
    rounds: NDArray[np.intp] | None = None

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard error of each mean over the splits; NaN for one split."""
        return standard_errors(self.folds)

    @cached_property
    def threshold(self) -> float:
        """The mean of the best setting less its standard error; with one split the mean."""
        return float(self.mean[self.best] - np.nan_to_num(self.standard_errors[self.best]))

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters that any setting has, by name."""
        return read_parameters(self.params)

    def take(self, chosen: ArrayLike) -> SearchScores:
        """Some settings, by position or mask; `best` is the best of these, or the old one if it is here."""
        kept = np.arange(len(self.params))[np.asarray(chosen)]
        among = np.flatnonzero(kept == self.best)
        return replace(
            self,
            params=tuple(self.params[i] for i in kept),
            candidates=self.candidates[kept],
            mean=self.mean[kept],
            folds=self.folds[kept],
            train_folds=None if self.train_folds is None else self.train_folds[kept],
            best=int(among[0]) if among.size else _highest(self.mean[kept]),
            rounds=None if self.rounds is None else self.rounds[kept],
        )

    def last_rounds(self) -> SearchScores:
        """Each setting once, in the last round of a halving search that it took part in."""
        if self.rounds is None:
            return self
        last: dict[Any, int] = {}
        for i in np.argsort(self.rounds, kind="stable"):
            rest = ((k, value_key(v)) for k, v in self.params[i].items() if k != self.resource)
            last[tuple(sorted(rest, key=lambda item: item[0]))] = int(i)
        return replace(self.take(sorted(last.values()))._without_resource(), rounds=None)

    def final_round(self) -> SearchScores:
        """The settings of the last round of a halving search, which were fitted on the same rows."""
        if self.rounds is None:
            return self
        return replace(self.take(self.rounds == self.rounds.max())._without_resource(), rounds=None)

    def _without_resource(self) -> SearchScores:
        params = [{k: v for k, v in one.items() if k != self.resource} for one in self.params]
        return replace(self, params=tuple(params), resource=None)


def read_scores(search: Any, metric: str | None, display: str) -> SearchScores:
    """The scores of a fitted search by one metric; errors name the class of the `display`."""
    if not hasattr(search, "cv_results_"):
        name = type(search).__name__
        if hasattr(search, "fit") and hasattr(search, "estimator"):
            raise NotFittedError(f"{display} shows a fitted search, and this {name} is not: call fit first.")
        raise TypeError(f"{display} shows a fitted search, such as GridSearchCV, got an object of {name}.")
    results = search.cv_results_
    metric = _metric(search, metric, display)
    mean = np.asarray(results[_PREFIX + metric], dtype=float)
    if np.isnan(mean).all():
        raise ValueError(f"{display} has nothing to show: {_PREFIX}{metric} is NaN for every setting.")
    params = tuple(map(dict, results["params"]))
    rounds = np.asarray(results["iter"]) if {"iter", "n_resources"} <= set(results) else None
    resource = None
    if rounds is not None:
        resource = getattr(search, "resource", "n_samples")
        resource = "n_resources" if resource == "n_samples" else resource
        params = tuple(
            {**one, resource: n} for one, n in zip(params, results["n_resources"].tolist(), strict=True)
        )
    return SearchScores(
        _name(search, metric),
        params,
        np.arange(len(mean)),
        mean,
        read_folds(results, metric),
        read_folds(results, metric, "train") if f"split0_train_{metric}" in results else None,
        _best(search, metric, mean),
        resource,
        rounds,
    )


def require_known(name: str, known: list[str], what: str, display: str) -> None:
    """Raise ValueError for a name that is not among those known, with the one that may be meant."""
    if name in known:
        return
    ends = [one for one in known if one.rpartition("__")[2] == name]
    close = ends or get_close_matches(name, known, n=1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{display}: no {what} {name!r}; the search has {', '.join(map(repr, known))}.{meant}")


def _metric(search: Any, metric: str | None, display: str) -> str:
    known = [key.removeprefix(_PREFIX) for key in search.cv_results_ if key.startswith(_PREFIX)]
    if metric is None:
        refit = getattr(search, "refit", None)
        metric = known[0] if len(known) == 1 else refit if isinstance(refit, str) else None
        if metric is None:
            raise ValueError(
                f"{display}: choose one of the metrics {', '.join(map(repr, known))} by metric=."
            )
    elif known == ["score"] and metric == getattr(search, "scoring", None):
        metric = "score"
    require_known(metric, known, "metric", display)
    return metric


def _name(search: Any, metric: str) -> str:
    scoring = getattr(search, "scoring", None)
    return scoring if metric == "score" and isinstance(scoring, str) else metric


def _best(search: Any, metric: str, mean: Floats) -> int:
    """The setting that the search chose by this metric, else the first with the highest mean."""
    chosen = getattr(search, "best_index_", None)
    by_this = metric == "score" or metric == getattr(search, "refit", None)
    return int(chosen) if by_this and chosen is not None and np.isfinite(mean[chosen]) else _highest(mean)


def _highest(mean: Floats) -> int:
    """Position of the highest mean; the first position if all are NaN."""
    return int(np.argmax(np.where(np.isnan(mean), -np.inf, mean)))


def varying(scores: SearchScores) -> list[str]:
    """The parameters in which settings differ, or all if there is one setting."""
    names = [name for name, one in scores.parameters.items() if one.varies]
    return names or list(scores.parameters)


def choose_parameters(scores: SearchScores, names: tuple[str | None, ...], display: str) -> list[str]:
    """The parameters of a display by name; those that are None are the only ones that vary."""
    known = list(scores.parameters)
    for name in names:
        if name is not None:
            require_known(name, known, "parameter", display)
    given = [name for name in names if name is not None]
    if len(given) > len({*given}):
        raise ValueError(f"{display} needs different parameters, got {given[0]!r} twice.")
    left = [name for name in varying(scores) if name not in given]
    n_left = len(names) - len(given)
    if n_left and len(left) != n_left:
        raise ValueError(
            f"{display} shows {len(names)} of the parameters in which settings differ, and there are "
            f"{len(left) + len(given)}: {', '.join(map(repr, [*given, *left])) or 'none'}. Name what to show."
        )
    rest = iter(left)
    return [next(rest) if name is None else name for name in names]


def at_best(scores: SearchScores, shown: Collection[str]) -> NDArray[np.bool_]:
    """The settings whose other parameters are those of the best one that has all shown."""
    has = has_all(scores, shown)
    positions = np.flatnonzero(has)
    best = positions[scores.take(positions).best]
    for name, one in scores.parameters.items():
        if name not in shown:
            has &= one.codes == one.codes[best]
    return has


def select(scores: SearchScores, shown: Collection[str], others: Others) -> tuple[NDArray[np.bool_], bool]:
    """The settings to show, and whether their other parameters are any."""
    if others not in ("auto", "best", "all"):
        raise ValueError(f"others must be 'auto', 'best' or 'all', got {others!r}.")
    kept, everything = at_best(scores, shown), has_all(scores, shown)
    codes = [scores.parameters[name].codes for name in shown]
    few = any(2 * len({*one[kept]}) <= len({*one[everything]}) > 1 for one in codes)
    if others == "all" or (others == "auto" and few):
        return everything, True
    return kept, False


def has_all(scores: SearchScores, shown: Collection[str]) -> NDArray[np.bool_]:
    """The settings that have all of some parameters, in a search over several grids."""
    has = np.ones(len(scores.params), dtype=bool)
    for name in shown:
        has &= np.array([name in one for one in scores.params])
    if not has.any():
        raise ValueError(f"No setting has all of {', '.join(map(repr, shown))}.")
    return has


def place(scores: SearchScores, names: tuple[str, str]) -> NDArray[np.intp]:
    """Positions of settings by the values of two parameters, -1 for none; of several settings the best."""
    rows, columns = (scores.parameters[name] for name in names)
    table = np.full((len(rows.values), len(columns.values)), -1, dtype=np.intp)
    order = np.argsort(np.where(np.isnan(scores.mean), -np.inf, scores.mean), kind="stable")
    best_last = np.append(order[order != scores.best], scores.best)
    table[rows.codes[best_last], columns.codes[best_last]] = best_last
    return table
