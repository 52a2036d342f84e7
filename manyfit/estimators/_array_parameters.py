"""Constructor parameters that are arrays on a device, such as priors, brought to where a call reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from manyfit.arrays import container_kind

# Of a longer list nothing is looked at: words, or estimators.
MOST = 64
# What most parameters are, told apart first: this is asked before each fit on the host.
_PLAIN = frozenset({type(None), bool, int, float, str})


def any_param_away(estimator: Any) -> bool:
    """Whether a parameter is an array on a device, or a short list, tuple or dict with one."""
    for name, value in vars(estimator).items():
        if type(value) not in _PLAIN and _is_param(name) and _is_away(value):
            return True
    return False


@contextmanager
def params_moved(
    estimator: Any, move: Callable[[Any], Any], *, keep: bool, there: bool = False
) -> Iterator[Any]:
    """An estimator whose parameters are where they are read.

    Parameters
    ----------
    estimator : estimator
        Any.
    move : callable
        Moves one array.
    keep : bool
        Whether it is to be the estimator itself, since it is fitted: its parameters are put back. A copy
        otherwise, for other threads may be asking it.
    there : bool, default=False
        Whether it works on a device, whose arrays a library may refuse to combine with NumPy's scalars.

    Yields
    ------
    estimator
        The estimator itself where no parameter is an array on a device.
    """
    given = {
        name: value
        for name, value in vars(estimator).items()
        if _is_param(name) and (_is_away(value) or (there and isinstance(value, np.number)))
    }
    if not given:
        yield estimator
        return
    moved = {name: _moved(value, move) for name, value in given.items()}
    if not keep:
        other = object.__new__(type(estimator))
        vars(other).update(vars(estimator), **moved)
        yield other
        return
    vars(estimator).update(moved)
    try:
        yield estimator
    finally:
        vars(estimator).update(given)


def _is_param(name: str) -> bool:
    return name[-1] != "_" and name[0] != "_"  # as what a fit leaves, which is not to be put back


def _parts(value: Any) -> Any:
    if type(value) not in (list, tuple, dict) or len(value) > MOST:
        return ()
    return value.values() if type(value) is dict else value


def _is_away(value: Any) -> bool:
    return container_kind(value) is not None or any(
        container_kind(part) is not None for part in _parts(value)
    )


def _moved(value: Any, move: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.number):
        return value.item()
    if container_kind(value) is not None:
        return move(value)
    if type(value) is dict:
        return {name: part if container_kind(part) is None else move(part) for name, part in value.items()}
    return type(value)(part if container_kind(part) is None else move(part) for part in value)
