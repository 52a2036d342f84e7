"""Warnings of a fit, recorded without a change to what other threads of the process see."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from manyfit.exceptions import Unsupported

_lock = threading.Lock()
_found: dict[int, list[str]] = {}  # by thread
_filters = ExitStack()


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Record the names of the warnings that this thread gives in the block, and show none of them.

    Python has one list of filters for all threads. A filter that turns warnings into errors would raise them
    in the fits of other threads, and blocks that overlap would restore each other's filters. So the first
    thread to enter changes the filters, and the last to leave restores them.
    """
    thread, found = threading.get_ident(), list[str]()
    with _lock:
        if not _found:
            _install()
        outer, _found[thread] = _found.get(thread), found
    try:
        yield found
    finally:
        with _lock:
            if outer is None:
                del _found[thread]
            else:
                _found[thread] = outer
            if not _found:
                _filters.close()


@contextmanager
def refused_warnings(subject: str) -> Iterator[None]:
    """Raise `Unsupported` if the block, such as "a fit", raises or warns: scikit-learn then does it again."""
    with recorded_warnings() as found:
        try:
            yield
        except Exception as error:
            raise Unsupported(f"{subject} gave {type(error).__name__}") from error
    if found:
        raise Unsupported(f"{subject} gave {found[0]}")


def _install() -> None:
    _filters.enter_context(warnings.catch_warnings())
    warnings.simplefilter("always")
    show = warnings.showwarning

    def record(message: Any, category: Any, *args: Any, **kwargs: Any) -> None:
        found = _found.get(threading.get_ident())
        if found is None:
            show(message, category, *args, **kwargs)
        else:
            found.append(category.__name__)

    warnings.showwarning = record
