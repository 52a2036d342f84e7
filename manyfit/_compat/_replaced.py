"""A function in the module of another project, replaced in one thread while a block runs.

Some code of other projects makes a thing that fits could share, such as bins or distances, by a function of
its module, and takes no such thing from its caller. With another function in its place that code runs as it
is written, and calls what remembers.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_lock = threading.Lock()


@contextmanager
def replaced(module: ModuleType, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Let this thread call `function` by the name of a function or a class of `module`.

    Other threads call the original. It is back in its place when no thread is in such a block.
    """
    with _lock:
        switch = vars(module)[name]
        if not isinstance(switch, _Switch):
            switch = _Switch(switch)
            setattr(module, name, switch)
        switch.blocks += 1
    outer = switch.of_thread()
    switch.own.function = function
    try:
        yield
    finally:
        switch.own.function = outer
        with _lock:
            switch.blocks -= 1
            if not switch.blocks and vars(module)[name] is switch:
                setattr(module, name, switch.original)


class _Switch:
    """Calls the function of its thread, or the original one."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self.original, self.blocks, self.own = original, 0, threading.local()

    def of_thread(self) -> Callable[..., Any]:
        """The function that this thread calls."""
        return getattr(self.own, "function", self.original)

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.of_thread()(*args, **params)
