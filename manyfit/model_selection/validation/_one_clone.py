"""One clone of an estimator for all fits of a call; scikit-learn's functions make one for each.

If splits draw from a generator that the estimator holds, clones differ, and each fit gets its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from sklearn.base import clone

from manyfit._config import set_in_block
from manyfit.introspection.randomness import holds_generator
from manyfit.introspection.stable_digest import Digester, Unkeyable
from manyfit.introspection.structural_key import ById

# Estimators by identity, each with its clone, while calls are drawn.
_CLONES: ContextVar[dict[int, tuple[Any, Any]] | None] = ContextVar("manyfit_clones", default=None)


def clone_once(estimator: Any) -> Any:
    """A clone of an estimator: the same one again while `draw_calls` draws, unless it is another by then."""
    made = _CLONES.get()
    if made is None:
        return clone(estimator)
    if id(estimator) not in made:
        made[id(estimator)] = estimator, clone(estimator)
    first = made[id(estimator)][1]
    if not holds_generator(estimator):
        return first
    own = clone(estimator)
    return first if _content(own) == _content(first) else own


def _content(estimator: Any) -> Any:
    try:
        return Digester()(estimator)
    except Unkeyable:
        return ById(estimator)


def have_one_estimator(calls: Sequence[Any]) -> bool:
    """Whether the estimators of calls are copies of one in the same state."""
    first, *others = (args[0] for _, args, _ in calls)
    if all(one is first for one in others) or not holds_generator(first):
        return True
    return all(_content(one) == _content(first) for one in others)


def draw_calls(calls: Iterable[Any]) -> list[Any]:
    """The calls that one of scikit-learn's functions gives to ``Parallel``."""
    with set_in_block(_CLONES, {}):
        return list(calls)


def with_own_clones(calls: Iterable[Any]) -> list[Any]:
    """The same calls; those with an estimator in common get a clone each, since their fits change it."""
    seen, found = set[int](), []
    for function, args, kwargs in calls:
        if args and id(args[0]) in seen:
            args = (clone(args[0]), *args[1:])
        elif args:
            seen.add(id(args[0]))
        found.append((function, args, kwargs))
    return found
