"""Warnings of a fit, recorded without a change to what other threads of the process see."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from manyfit.folds import Unsupported

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
        _found[thread] = found
    try:
        yield found
    finally:
        with _lock:
            del _found[thread]
            if not _found:
                _filters.close()


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


def fit_or_refuse(estimator: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Fit an estimator and return it; raise `Unsupported` if that raises or warns.

    scikit-learn's own fit then tells the user.
    """
    with recorded_warnings() as found:
        try:
            estimator.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
        except Exception as error:
            raise Unsupported(f"a fit gave {type(error).__name__}") from error
    if found:
        raise Unsupported(f"a fit gave {found[0]}")
    return estimator
