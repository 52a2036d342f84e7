"""manyfit's options: the device, and what happens if data must be copied to the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")

CHOICES = {"device": ("auto", "cpu", "cuda"), "host_fallback": ("warn", "error", "ignore")}

# Replaced as a whole and never changed, so that other threads see a change completely or not at all.
_process: Mapping[str, str] = {"device": "auto", "host_fallback": "warn"}
# Only the options that a `config_context` sets: it sees later changes of the others by `set_config`.
_context: ContextVar[Mapping[str, str]] = ContextVar("manyfit_config", default=MappingProxyType({}))


def get_config() -> dict[str, str]:
    """Read the current configuration.

    Returns
    -------
    dict of str to str
        Value of each option of `set_config`, as a copy.

    Examples
    --------
    >>> import manyfit
    >>> manyfit.get_config()
    {'device': 'auto', 'host_fallback': 'warn'}
    """
    return {**_process, **_context.get()}


def set_config(*, device: str | None = None, host_fallback: str | None = None) -> None:
    """Set the configuration of this process, for all its threads.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}, optional
        Where a search works on host data. With "auto" they stay on the host, except on GPU workers; None
        leaves the option as it is.
    host_fallback : {"warn", "error", "ignore"}, optional
        What happens if an estimator does not support the device of its data, so that they must be copied to
        the host: a `manyfit.exceptions.HostFallbackWarning`, once for each estimator and reason, a
        `manyfit.exceptions.HostFallbackError`, or nothing. None leaves the option as it is.

    Raises
    ------
    ValueError
        If an option has no such value.

    Notes
    -----
    Options that an enclosing `config_context` sets keep their value until it ends. Each process has its own
    configuration.
    """
    global _process
    _process = {**_process, **_check_options(device=device, host_fallback=host_fallback)}


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
    It applies to this thread or asyncio task only. A thread that starts inside the block has the
    configuration of the process, unless it runs in a copy of this context
    (``contextvars.copy_context().run``).

    Examples
    --------
    >>> import manyfit
    >>> with manyfit.config_context(host_fallback="error"):
    ...     manyfit.get_config()["host_fallback"]
    'error'
    """
    own = _check_options(device=device, host_fallback=host_fallback)
    with set_in_block(_context, {**_context.get(), **own}):
        yield


def _check_options(**options: Any) -> dict[str, str]:
    """The options that are not None; ValueError for a value that is not among the choices."""
    for name, value in options.items():
        if value is not None and (not isinstance(value, str) or value not in CHOICES[name]):
            choices = ", ".join(map(repr, CHOICES[name]))
            raise ValueError(f"manyfit's option {name} must be one of {choices}, got {value!r}.")
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def set_in_block(variable: ContextVar[T], value: T) -> Iterator[T]:
    """Set a context variable inside a ``with`` block."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
