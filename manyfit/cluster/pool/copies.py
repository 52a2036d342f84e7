"""Tasks that are the same work, handed out more than once: the first answer counts."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Future


class Copies:
    """Which tasks are copies of each other."""

    def __init__(self) -> None:
        self._groups: dict[Future, set[Future]] = {}

    def add(self, future: "Future", like: "Future") -> None:
        """Say that a task is the same work as another."""
        group = self._groups.setdefault(like, {like})
        group.add(future)
        self._groups[future] = group

    def others(self, future: "Future") -> "list[Future]":
        """The copies of a task, without itself."""
        return [one for one in self._groups.get(future, ()) if one is not future]

    def drop(self, future: "Future") -> None:
        """A task is no longer under way."""
        self._groups.pop(future, set()).discard(future)

    def all_in(self, future: "Future", keys: Iterable[str]) -> bool:
        """Whether the keys of a task and of all of its copies are among these."""
        return all(str(one.key) in keys for one in (future, *self.others(future)))
