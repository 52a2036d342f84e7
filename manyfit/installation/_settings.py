"""How installed searches run: the options that `install` was given, for all threads of the process."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

from manyfit.model_selection.search import Sharing, memory_limit_in_bytes


@dataclass(frozen=True, eq=False)
class Settings:
    """Options of installed searches; `show_plans` prints the plan of each one before it runs."""

    sharing: Sharing = "auto"
    verify: int = 0
    memory_limit: int | str | None = None
    client: Any = False
    show_plans: bool = False

    def __post_init__(self) -> None:
        memory_limit_in_bytes(self.memory_limit)  # raises for what a search would refuse


lock = Lock()
# The first is that of `install`, the others of blocks `with installed()`; the last one counts. The list is
# replaced as a whole, so that other threads read it without the lock.
_active: tuple[Settings, ...] = ()


def current() -> Settings | None:
    """The settings that count now, or None if manyfit is not installed."""
    active = _active
    return active[-1] if active else None


def activate(settings: Settings) -> None:
    """Let settings count until they are removed."""
    global _active
    _active = (*_active, settings)


def remove(settings: Settings | None = None) -> None:
    """Remove some settings; without an argument, all."""
    global _active
    _active = tuple(one for one in _active if settings is not None and one is not settings)
