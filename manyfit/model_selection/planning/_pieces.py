"""Cuts individual fits into pieces, each of which one worker runs."""

from collections.abc import Sequence
from itertools import chain, groupby
from typing import Any

from manyfit.model_selection.job._job import Pair


def cut_into_pieces(
    pairs: Sequence[Pair], order: Sequence[Any] | None, n_workers: int
) -> list[tuple[int, Sequence[int]]]:
    """Pairs as (split, candidates): single pairs if nothing is shared, else whole folds, evened out."""
    if order is None:
        return [(i, [c]) for c, i in pairs]
    by_split = sorted(pairs, key=lambda pair: (pair[1], order[pair[0]], pair[0]))
    folds = [(i, [c for c, _ in run]) for i, run in groupby(by_split, key=lambda pair: pair[1])]
    whole = len(folds) - len(folds) % n_workers
    found: list[tuple[int, Sequence[int]]] = list(folds[:whole])
    for i, cs in folds[whole:]:
        found += [(i, part) for part in _pieces(cs, order, 2 * n_workers)]
    return found


def _pieces(cs: list[int], order: Sequence[Any], n: int) -> list[list[int]]:
    """Cut the candidates of a left-over fold into about `n` parts, between shared steps if possible."""
    blocks = [list(run) for _, run in groupby(cs, key=lambda c: order[c])]
    if len(blocks) < n // 2:
        size = -(-len(cs) // n)
        return [cs[j : j + size] for j in range(0, len(cs), size)]
    size = -(-len(blocks) // n)
    return [list(chain(*blocks[j : j + size])) for j in range(0, len(blocks), size)]
