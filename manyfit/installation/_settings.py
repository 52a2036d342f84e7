"""How installed searches run: the options that `install` was given, for all threads of the process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

from manyfit._compat import BaseSearchCV
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

    def fits_within(self, estimator: Any) -> Callable[[], AbstractContextManager[None]]:
        """In what other processes fit an estimator: if it holds a search, that is served there, too."""
        held = (estimator, *estimator.get_params().values()) if hasattr(estimator, "get_params") else ()
        if not any(isinstance(one, BaseSearchCV) for one in held):
            return nullcontext  # such processes need not import manyfit's engine
        return partial(_installed_within, replace(self, client=False, show_plans=False))


def _installed_within(settings: Settings) -> AbstractContextManager[None]:
    """Make a context in which manyfit is installed, in a process where it is not."""
    from manyfit.installation._install import block

    return block(settings) if current() is None else nullcontext()


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
