"""Counts of fits, whichever library makes them."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock


@contextmanager
def count_fits(classes: tuple[type, ...]) -> Iterator[Counter[str]]:
    """Count the fits of these classes in this process, by class name; a fit inside a fit is one."""
    counts: Counter[str] = Counter({cls.__name__: 0 for cls in classes})
    inside, lock = threading.local(), threading.Lock()

    def counted(cls: type, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if type(self) is not cls or getattr(inside, cls.__name__, False):
                return method(self, *args, **kwargs)
            with lock:
                counts[cls.__name__] += 1
            setattr(inside, cls.__name__, True)
            try:
                return method(self, *args, **kwargs)
            finally:
                setattr(inside, cls.__name__, False)

        return call

    with ExitStack() as stack:
        for cls in classes:
            for name in ("fit", "fit_transform"):
                if hasattr(cls, name):
                    method = counted(cls, getattr(cls, name))
                    stack.enter_context(mock.patch.object(cls, name, method))
        yield counts
