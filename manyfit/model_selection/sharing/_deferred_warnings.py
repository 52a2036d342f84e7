"""Warnings of fits that may have to be made again: shown once it is known that the fits count."""

import threading
import warnings
from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager
from typing import Any


def in_main_thread() -> bool:
    """Whether a fit may change state of the process (warnings, NumPy's random state) while it runs."""
    return threading.current_thread() is threading.main_thread()


class DeferredWarnings:
    """Warnings held back by key; other threads than the main one hold none back."""

    def __init__(self) -> None:
        self._held: dict[Hashable, list[Any]] = {}

    @contextmanager
    def under(self, key: Hashable) -> Iterator[None]:
        """Hold back the warnings of the block, after those already held under `key`."""
        if not in_main_thread():
            yield
            return
        show, held = warnings.showwarning, self._held.setdefault(key, [])
        # The filters stay: a change would make Python show one-time warnings again.
        warnings.showwarning = lambda *args, **kwargs: held.append((args, kwargs))
        try:
            yield
        finally:
            warnings.showwarning = show

    def emit(self, counted: Collection[Hashable]) -> bool:
        """Show the warnings of the keys that count, and drop the others: their fits will be made again.

        Returns whether any were dropped.
        """
        dropped = False
        for key, held in self._held.items():
            if key not in counted:
                dropped = dropped or bool(held)
                continue
            for args, kwargs in held:
                warnings.showwarning(*args, **kwargs)
        self._held.clear()
        if dropped:
            # Python takes dropped warnings for shown, until the filters change.
            with warnings.catch_warnings():
                pass
        return dropped
