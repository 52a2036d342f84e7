"""What is said where data of a device have to come to the host: as the option ``host_fallback`` has it."""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import joblib
import sklearn

from manyfit import _config
from manyfit.exceptions import HostFallbackError, HostFallbackWarning

# What lies between a user's line and what is said of it: folders, with the separator behind them.
_OURS = tuple(str(Path(str(module.__file__)).parent / "_")[:-1] for module in (_config, sklearn, joblib))
_told: set[tuple[object, str]] = set()
_refused: ContextVar[list[HostFallbackError] | None] = ContextVar("manyfit_refused", default=None)


def warn_host_fallback(who: object, text: str) -> None:
    """Warn that data come to the host, once for all that is equal to `who` and `text`, or refuse it.

    Parameters
    ----------
    who : object
        Whose data.
    text : str
        That they do, and why.

    Raises
    ------
    HostFallbackError
        Under ``host_fallback="error"``.
    """
    how = _config.get_config()["host_fallback"]
    if how == "error":
        error = HostFallbackError(
            f"{text} Bring them there yourself (manyfit.arrays.to_host), or allow it by "
            "manyfit.config_context(host_fallback='warn')."
        )
        heard = _refused.get()
        if heard is not None:
            heard.append(error)
        raise error
    if how == "ignore" or (who, text) in _told:
        return
    warnings.warn(text, HostFallbackWarning, stacklevel=_frames_of_ours())
    _told.add((who, text))


@contextmanager
def collect_fallback_errors() -> Iterator[list[HostFallbackError]]:
    """Hear of what is refused within it also where somebody catches that, such as who scores failed fits.

    Yields
    ------
    list of HostFallbackError
        Those so far.
    """
    heard: list[HostFallbackError] = []
    outer = _refused.get()
    token = _refused.set(heard)
    try:
        yield heard
    finally:
        _refused.reset(token)
        if outer is not None:
            outer += heard


def _frames_of_ours() -> int:
    """How many frames of manyfit's and scikit-learn's lie between a warning and the user."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame, level = frame.f_back, level + 1
    return level


def reset_fallback_warnings() -> None:
    """Forget which warnings were given, so that each is given again."""
    _told.clear()
