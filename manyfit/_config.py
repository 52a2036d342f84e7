"""What manyfit is told once for all: the device, and what happens where data has to come to the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

__all__ = ["config_context", "get_config", "set_config"]

CHOICES = {"device": ("auto", "cpu", "cuda"), "host_fallback": ("warn", "error", "ignore")}

# Replaced as a whole, never changed: a reader in another thread sees all of a change or nothing of it.
_process: Mapping[str, str] = {"device": "auto", "host_fallback": "warn"}
# Only what a `config_context` names: of the rest, a later `set_config` is seen inside of it.
_here: ContextVar[Mapping[str, str]] = ContextVar("manyfit_config", default=MappingProxyType({}))


def get_config() -> dict[str, str]:
    """Read the configuration that holds here.

    Returns
    -------
    dict of str to str
        Value of each option of `set_config`. A copy: changing it changes nothing.

    Examples
    --------
    >>> import manyfit
    >>> manyfit.get_config()
    {'device': 'auto', 'host_fallback': 'warn'}
    """
    return {**_process, **_here.get()}


def set_config(*, device: str | None = None, host_fallback: str | None = None) -> None:
    """Set the configuration of this process, for all its threads.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}, optional
        Where data that lies on the host is worked on. "auto" leaves it there, but for GPU workers; None
        leaves the option as it is.
    host_fallback : {"warn", "error", "ignore"}, optional
        What happens where an estimator cannot work on the device that its data lie on, so that these have to
        come to the host: a `manyfit.exceptions.HostFallbackWarning`, once for each estimator and reason, a
        `manyfit.exceptions.HostFallbackError`, or nothing. None leaves the option as it is.

    Raises
    ------
    ValueError
        If an option has no such value.

    Notes
    -----
    What an enclosing `config_context` names keeps its value until that ends. Other processes have a
    configuration of their own.
    """
    global _process
    _process = {**_process, **_given(device=device, host_fallback=host_fallback)}


@contextmanager
def config_context(*, device: str | None = None, host_fallback: str | None = None) -> Iterator[None]:
    """Set the configuration while a ``with`` block runs.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}, optional
        See `set_config`.
    host_fallback : {"warn", "error", "ignore"}, optional
        See `set_config`.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    ValueError
        If an option has no such value.

    Notes
    -----
    Holds for this thread, or asyncio task, only. A thread that is started inside the block has the
    configuration of the process, unless it runs in a copy of this context
    (``contextvars.copy_context().run``).

    Examples
    --------
    >>> import manyfit
    >>> with manyfit.config_context(host_fallback="error"):
    ...     manyfit.get_config()["host_fallback"]
    'error'
    """
    token = _here.set({**_here.get(), **_given(device=device, host_fallback=host_fallback)})
    try:
        yield
    finally:
        _here.reset(token)


def _given(**options: Any) -> dict[str, str]:
    """The options that are not None, each one of its choices."""
    for name, value in options.items():
        if value is not None and (not isinstance(value, str) or value not in CHOICES[name]):
            choices = ", ".join(map(repr, CHOICES[name]))
            raise ValueError(f"manyfit's option {name} must be one of {choices}, got {value!r}.")
    return {name: value for name, value in options.items() if value is not None}
