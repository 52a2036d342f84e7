"""The cases that `make test` runs; `make thorough` runs the rest, which is marked as thorough.

`covering` chooses combinations of several parameters, `spread` some cases of a list. A run with
``-m "not thorough"`` does not make the rest at all: it would take seconds to collect what is left out.
The mark ``cases(n)`` stands at tests whose cases take long or are very many: `few` chooses those that run.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, ItemsView, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

MAKES_THOROUGH_CASES = True  # set for a run by tests/conftest.py


def covering(*parameters: Collection[Any], strength: int = 2) -> list[Any]:
    """All combinations for ``parametrize``; those that `make test` need not run are marked as thorough.

    Each combination of values of any `strength` parameters is in a case without the mark. A tuple has the
    values of several parameters. The items of a dict are values with names, which name the case.
    """
    values = [_labelled(one) for one in parameters]
    sizes = tuple(len(one) for one in values)
    chosen = _chosen(sizes, min(strength, len(values)))
    return [
        _case([one[i] for one, i in zip(values, at, strict=True)], at in chosen)
        for at in itertools.product(*map(range, sizes))
        if at in chosen or MAKES_THOROUGH_CASES
    ]


def spread(cases: Collection[Any], n: int) -> list[Any]:
    """Cases for ``parametrize``; all but `n` of them, evenly spread from the first to the last, are thorough.

    A tuple has the values of several parameters. The items of a dict are cases with names.
    """
    kept = {*evenly(range(len(cases)), n)}
    return [
        _case([one], i in kept) for i, one in enumerate(_labelled(cases)) if i in kept or MAKES_THOROUGH_CASES
    ]


def few(cases: Sequence[T], n: int, values: Callable[[T], Collection[Any]]) -> list[T]:
    """At most `n` cases: again and again that whose `values` are in fewest so far, else evenly spread."""
    left = evenly(cases, n)
    first = {id(case) for case in left}
    left += [case for case in cases if id(case) not in first]
    held = [(case, list(values(case))) for case in left]
    chosen: list[T] = []
    used: dict[Any, int] = {}
    while held and len(chosen) < n:
        best = min(range(len(held)), key=lambda i: sum(used.get(one, 0) for one in held[i][1]))
        case, its_values = held.pop(best)
        for one in its_values:
            used[one] = used.get(one, 0) + 1
        chosen.append(case)
    return chosen


def evenly(things: Sequence[T], n: int | None) -> list[T]:
    """At most `n` things, evenly spread from the first to the last; None: all."""
    if n is None or n >= len(things):
        return list(things)
    return [things[round(i * (len(things) - 1) / max(n - 1, 1))] for i in range(n)]


def _labelled(values: Collection[Any]) -> list[tuple[str | None, Any]]:
    """Values with what they are called in the name of a test, None for what has no short name."""
    if isinstance(values, ItemsView):
        return list(values)
    return [(str(one) if isinstance(one, str | int | float | None) else None, one) for one in values]


def _case(labelled: list[tuple[str | None, Any]], is_chosen: bool) -> Any:
    labels, values = zip(*labelled, strict=True)
    flat = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    name = None if None in labels else "-".join(labels)
    return pytest.param(*flat, id=name, marks=() if is_chosen else pytest.mark.thorough)


@functools.cache  # many tests have as many values
def _chosen(sizes: tuple[int, ...], strength: int) -> frozenset[tuple[int, ...]]:
    """Of the cases that cover most of what is open the one whose values are used least, again and again."""
    places: dict[Any, int] = {}

    def cover(at: tuple[int, ...]) -> int:
        parts = itertools.combinations(enumerate(at), strength)
        return sum(1 << places.setdefault(part, len(places)) for part in parts)

    covers = {at: cover(at) for at in itertools.product(*map(range, sizes))}
    used = [[0] * size for size in sizes]
    left, chosen = (1 << len(places)) - 1, set()

    def worth(at: tuple[int, ...]) -> tuple[int, int]:
        return (covers[at] & left).bit_count(), -sum(of[i] for of, i in zip(used, at, strict=True))

    while left:
        best = max(covers, key=worth)
        left &= ~covers[best]
        for of, i in zip(used, best, strict=True):
            of[i] += 1
        chosen.add(best)
    return frozenset(chosen)
