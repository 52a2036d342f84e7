"""Constructor parameters that are arrays on a device, such as priors, moved to the place of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from manyfit.arrays import container_kind

# Longer lists hold words or estimators, and are not searched for arrays.
MAX_LENGTH = 64
# The types of most parameters. They are excluded first, because the check runs before each fit on the host.
_PLAIN = frozenset({type(None), bool, int, float, str})


def has_device_params(estimator: Any) -> bool:
    """Whether a parameter is an array on a device, or a short list, tuple or dict with one."""
    return any(
        type(value) not in _PLAIN and _is_param(name) and _holds_array(value)
        for name, value in vars(estimator).items()
    )


@contextmanager
def move_params(
    estimator: Any, move: Callable[[Any], Any], *, keep: bool, unwrap_scalars: bool = False
) -> Iterator[Any]:
    """An estimator whose parameters on a device are moved by ``move(array)`` inside a ``with`` block.

    With `keep` it is the estimator itself, for a fit, and its parameters are restored; else it is a copy,
    because other threads may call the estimator. `unwrap_scalars` converts NumPy's scalars to Python's.
    """
    given = {
        name: value
        for name, value in vars(estimator).items()
        if _is_param(name) and (_holds_array(value) or (unwrap_scalars and isinstance(value, np.number)))
    }
    if not given:
        yield estimator
        return
    moved = {name: _move(value, move) for name, value in given.items()}
    if not keep:
        yield shallow_copy(estimator, moved)
        return
    vars(estimator).update(moved)
    try:
        yield estimator
    finally:
        vars(estimator).update(given)


def shallow_copy(estimator: Any, attributes: Mapping[str, Any]) -> Any:
    """A copy with some attributes replaced; `copy.copy` would pickle it."""
    copied = object.__new__(type(estimator))
    vars(copied).update({**vars(estimator), **attributes})
    return copied


def _is_param(name: str) -> bool:
    return name[-1] != "_" and name[0] != "_"  # other attributes are set by a fit


def _parts(value: Any) -> Any:
    if type(value) not in (list, tuple, dict) or len(value) > MAX_LENGTH:
        return ()
    return value.values() if type(value) is dict else value


def _holds_array(value: Any) -> bool:
    return any(container_kind(one) is not None for one in (value, *_parts(value)))


def _move(value: Any, move: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.number):
        return value.item()
    if container_kind(value) is not None:
        return move(value)
    if type(value) is dict:
        return {name: part if container_kind(part) is None else move(part) for name, part in value.items()}
    return type(value)(part if container_kind(part) is None else move(part) for part in value)
