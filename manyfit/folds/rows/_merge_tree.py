"""Sums of consecutive parts, merged as a fixed tree: the order in which parts come does not change a bit."""

from collections.abc import Callable, Iterator
from typing import Any

Node = tuple[int, int, Any]
"""The merge of ``2 ** level`` parts: the level, its number among those of the level, and what was merged."""


class MergeTree:
    """Merges parts 0 and 1, 2 and 3, and so on, and these in pairs again.

    ``merge(a, b)`` returns the merge of neighbours and may change `a`. If parts come in order, about
    ``log2(n)`` merges of them are in memory at a time.
    """

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self.merge = merge
        self._waiting: dict[tuple[int, int], Any] = {}

    def add(self, level: int, number: int, part: Any) -> None:
        """Add a part (level 0), or a node of another tree of the same parts."""
        while (level, number ^ 1) in self._waiting:
            other = self._waiting.pop((level, number ^ 1))
            part = self.merge(other, part) if number & 1 else self.merge(part, other)
            level, number = level + 1, number >> 1
        self._waiting[level, number] = part

    def nodes(self) -> Iterator[Node]:
        """The nodes that wait for their neighbours, in the order of the parts."""
        for level, number in sorted(self._waiting, key=lambda node: node[1] << node[0]):
            yield level, number, self._waiting[level, number]

    def result(self) -> Any:
        """The merge of all parts; None if there are none."""
        total = None
        for j, (_, _, part) in enumerate(self.nodes()):
            total = part if j == 0 else self.merge(total, part)
        return total
