"""Warnings of attempts that may have to be made again: shown once it is known that they count."""

import threading
import warnings
from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager
from typing import Any


def in_main_thread() -> bool:
    """Whether what belongs to the process may be changed for the time of a fit."""
    return threading.current_thread() is threading.main_thread()


class DeferredWarnings:
    """Warnings kept back by what was attempted; in other threads than the main one they are not."""

    def __init__(self) -> None:
        self._held: dict[Hashable, list[Any]] = {}

    @contextmanager
    def of(self, key: Hashable) -> Iterator[None]:
        """Keep back what is warned of in the block, along with what was held of `key` before."""
        if not in_main_thread():
            yield
            return
        show, held = warnings.showwarning, self._held.setdefault(key, [])
        # The filters are left alone: changing them would make Python show again what it shows once.
        warnings.showwarning = lambda *args, **kwargs: held.append((args, kwargs))
        try:
            yield
        finally:
            warnings.showwarning = show

    def settle(self, counted: Collection[Hashable]) -> None:
        """Show what is held of the attempts that count, and forget the rest: they will be made again."""
        dropped = False
        for key, held in self._held.items():
            if key not in counted:
                dropped = dropped or bool(held)
                continue
            for args, kwargs in held:
                warnings.showwarning(*args, **kwargs)
        self._held.clear()
        if dropped:
            # Python takes what was dropped for shown, until the filters change.
            with warnings.catch_warnings():
                pass
