"""What the scores of a search say about its settings: edges, ties within noise, parameters of one value."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import is_bound_of
from manyfit.model_selection.results._simpler import read_folds
from manyfit.model_selection.results.displays._paired_tests import standard_errors, test_train_ratio
from manyfit.model_selection.results.displays._parameters import Parameter, number_text, read_parameters

Floats = NDArray[np.float64]
# Of two values, one is always the best and at the edge.
_FEWEST_FOR_AN_EDGE = 3


def advise(search: Any, results: Mapping[str, Any], metric: str | None, X: Any) -> list[str]:
    """Lines for the report of a search that has chosen `best_index_` by the mean of a metric.

    None: another rule has chosen. A halving search is judged by its last round.
    """
    rows = np.arange(len(results["params"]))
    if "iter" in results:
        rows = np.flatnonzero(np.asarray(results["iter"]) == np.max(results["iter"]))
    if metric is not None:  # settings that failed, or for which there was no time, say nothing
        rows = rows[np.isfinite(np.asarray(results[f"mean_test_{metric}"], dtype=float)[rows])]
    if len(rows) < 2:
        return []
    resource = getattr(search, "resource", None)
    every = [{n: v for n, v in one.items() if n != resource} for one in results["params"]]
    listed, parameters = read_parameters(every), read_parameters([every[row] for row in rows])
    lines = list(_constant(listed))
    best = np.flatnonzero(rows == search.best_index_)
    if metric is None or not best.size:
        return lines
    mean = np.asarray(results[f"mean_test_{metric}"], dtype=float)[rows]
    # A value that only the settings without a score, or of earlier rounds, go beyond is no edge.
    ends = {n: one for n, one in parameters.items() if _reaches_an_end(one, listed[n], int(best[0]))}
    lines += _edges(search, ends, mean, int(best[0]), _width(X))
    folds = read_folds(results, metric)[rows]
    return lines + _noise(folds, int(best[0]), test_train_ratio(search, search.n_splits_))


def _constant(parameters: Mapping[str, Parameter]) -> Iterator[str]:
    for name, one in parameters.items():
        if not one.varies:
            yield f"{name} has one value, {one.texts[0]}: set it on the estimator, or add values."


def _edges(
    search: Any, parameters: Mapping[str, Parameter], mean: Floats, best: int, n_columns: int
) -> Iterator[str]:
    """A line for each numeric parameter whose best value is the smallest or the largest of those listed.

    None where the neighbouring value scores as well, where values are drawn, and where the estimator takes no
    value beyond, such as a number of components that is the number of columns.
    """
    drawn = _drawn(search, parameters)
    for name, one in parameters.items():
        n, code = len(one.values), int(one.codes[best])
        if name in drawn or not one.is_ordered or n < _FEWEST_FOR_AN_EDGE or code not in (0, n - 1):
            continue
        beside = mean[one.codes == (1 if code == 0 else n - 2)]
        if not np.nanmax(beside, initial=-np.inf) < mean[best]:
            continue
        end, way = ("smallest", "smaller") if code == 0 else ("largest", "larger")
        value = one.values[code]
        counts_columns = way == "larger" and isinstance(value, numbers.Integral) and value == n_columns
        if counts_columns or is_bound_of(search.estimator, name, value, way):
            continue
        yield (f"The best {name}, {_shown(value)}, is the {end} of {n} values: {way} ones may score better.")


def _reaches_an_end(one: Parameter, listed: Parameter, best: int) -> bool:
    """Whether a value is the smallest or largest of all that were listed; texts are left to others."""
    if not (one.is_ordered and listed.is_ordered):
        return True
    return one.values[int(one.codes[best])] in (listed.values[0], listed.values[-1])


def _width(X: Any) -> int:
    """The number of columns of X; 0 if it has none, as texts."""
    shape: Any = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else 0


def _drawn(search: Any, names: Iterable[str]) -> set[str]:
    """Parameters with a distribution, of which values are drawn; all, if a function draws them."""
    spaces = getattr(search, "param_distributions", None) or {}
    if callable(spaces):
        return set(names)
    spaces = [spaces] if isinstance(spaces, Mapping) else spaces
    return {name for space in spaces for name, values in space.items() if not hasattr(values, "__iter__")}


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, numbers.Integral) else number_text(float(value))


def _noise(folds: Floats, best: int, ratio: float) -> list[str]:
    """A line if other settings differ from the best by less than a standard error of the difference."""
    if folds.shape[1] < 2:
        return []
    others = np.delete(folds, best, axis=0)
    with np.errstate(all="ignore"):  # also where scores are as large as numbers can be
        differences = folds[best] - others
        error = standard_errors(differences, "corrected t", ratio)
        near = int(np.count_nonzero(differences.mean(axis=1) <= error))
    if not near:
        return []
    n = len(others)
    return [
        f"The best setting is within the noise of its folds: {near} of {n} other settings score within a "
        "standard error of it. refit=one_standard_error() of manyfit.model_selection chooses the simplest of "
        "them."
    ]
