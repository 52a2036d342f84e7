"""Settings along one or two parameters, the others at their best."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from manyfit.model_selection.results.displays._scores import SearchScores, require_known

Others = Literal["auto", "best", "all"]


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
