"""Cases that stand for all combinations of several parameters."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

import pytest


def covering(*parameters: Collection[Any], strength: int = 2) -> list[Any]:
    """All combinations for ``parametrize``; those that `make test` need not run are marked as thorough.

    Each combination of values of any `strength` parameters is in a case without the mark.
    """
    values = [list(one) for one in parameters]
    product = list(itertools.product(*(range(len(one)) for one in values)))
    chosen = _chosen(product, min(strength, len(values)))
    return [
        pytest.param(
            *(one[i] for one, i in zip(values, at, strict=True)),
            marks=() if at in chosen else pytest.mark.thorough,
        )
        for at in product
    ]


def _chosen(product: list[tuple[int, ...]], strength: int) -> set[tuple[int, ...]]:
    """Of the cases that cover most of what is open, the first, again and again."""

    def covered(at: tuple[int, ...]) -> set[Any]:
        return set(itertools.combinations(enumerate(at), strength))

    cover = {at: covered(at) for at in product}
    left, chosen = set().union(*cover.values()), set()
    while left:
        best = max(product, key=lambda at: len(cover[at] & left))
        left -= cover[best]
        chosen.add(best)
    return chosen
