"""The warning or error for data that move from a device to the host, as the option ``host_fallback`` asks."""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import joblib
import sklearn

from manyfit import exceptions
from manyfit._config import get_config, set_in_block
from manyfit.exceptions import HostFallbackError, HostFallbackWarning

# Folders, with a separator at the end, whose frames lie between a user's line and the warning.
_SKIPPED = tuple(
    str(Path(str(module.__file__)).parent / "_")[:-1] for module in (exceptions, sklearn, joblib)
)
_warned: set[tuple[object, str]] = set()
_collected: ContextVar[list[HostFallbackError] | None] = ContextVar("manyfit_fallback_errors", default=None)


def warn_host_fallback(caller: object, text: str) -> None:
    """Warn, once for each pair of `caller` and `text`, that data move to the host.

    Raises HostFallbackError instead under ``host_fallback="error"``, and does nothing under "ignore".
    """
    option = get_config()["host_fallback"]
    if option == "error":
        error = HostFallbackError(
            f"{text} Move the data yourself with manyfit.arrays.to_host, or allow it with "
            "manyfit.config_context(host_fallback='warn')."
        )
        collected = _collected.get()
        if collected is not None:
            collected.append(error)
        raise error
    if option == "ignore" or (caller, text) in _warned:
        return
    warnings.warn(text, HostFallbackWarning, stacklevel=_skipped_frames())
    _warned.add((caller, text))


@contextmanager
def collect_fallback_errors() -> Iterator[list[HostFallbackError]]:
    """Collect the fallback errors inside a block, also those that scikit-learn catches as failed fits."""
    outer, collected = _collected.get(), list[HostFallbackError]()
    try:
        with set_in_block(_collected, collected):
            yield collected
    finally:
        if outer is not None:
            outer += collected


def _skipped_frames() -> int:
    """The number of frames of manyfit, scikit-learn and joblib between a warning and the user's line."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame, level = frame.f_back, level + 1
    return level
