"""The families and affine steps that searches of this process know."""

from __future__ import annotations

import inspect
from collections.abc import Set
from typing import Any, TypeVar

from manyfit.families.protocol._catalog import AFFINE_STEPS, COLUMN_STEPS, FAMILIES, SPARSE_STEPS
from manyfit.families.protocol._protocol import (
    AffineStep,
    ColumnStep,
    Family,
    FoldRows,
    Iterations,
    MomentSums,
    SparseStep,
)
from manyfit.introspection.class_names import ClassTable

_families = ClassTable[Family](FAMILIES)
_affine_steps = ClassTable[AffineStep](AFFINE_STEPS)
_column_steps = ClassTable[ColumnStep](COLUMN_STEPS)
_sparse_steps = ClassTable[SparseStep](SPARSE_STEPS)

F = TypeVar("F", bound=Family)
A = TypeVar("A", bound=AffineStep)


def register_family(family: F) -> F:
    """Let a family serve its types in every search of this process; returns it.

    A later registration for the same type replaces the earlier one.

    Parameters
    ----------
    family : Family
        An instance; it is pickled and sent to workers with its work.

    Returns
    -------
    Family
        The same object.

    Raises
    ------
    TypeError
        If it is no instance of a subclass of `Family`, or one of its attributes is missing or not of the kind
        that `Family` describes.
    """
    _require_valid(family)
    _families.register(family, *family.serves)
    return family


def _require_valid(family: Any) -> None:
    """Raise TypeError, with the family and the attribute, unless a search can read all its facts."""
    if isinstance(family, type):
        raise TypeError(f"{family.__name__} is a class: register an instance, {family.__name__}().")
    name = type(family).__name__
    if not isinstance(family, Family):
        raise TypeError(f"{name} should inherit from manyfit.estimators.Family.")

    def require(valid: bool, attribute: str, expected: str) -> None:
        if not valid:
            found = repr(getattr(family, attribute)) if hasattr(family, attribute) else "missing"
            raise TypeError(f"{name}.{attribute} should be {expected}; it is {found}.")

    serves, free = getattr(family, "serves", None), getattr(family, "free", None)
    is_tuple = isinstance(serves, tuple) and len(serves) > 0 and all(isinstance(cls, type) for cls in serves)
    require(is_tuple, "serves", "a tuple of estimator classes")
    is_set = isinstance(free, Set) and all(isinstance(one, str) for one in free)
    require(is_set, "free", "a frozenset of parameter names")
    for cls in serves or ():
        known = inspect.signature(cls).parameters
        if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
            continue  # its parameters are not known without an instance
        unknown = sorted(set(free or ()) - set(known))
        require(not unknown, "free", f"parameters of {cls.__name__}, which has no {', '.join(unknown)}")
    require(getattr(family, "result", None) in ("exact", "converged"), "result", "'exact' or 'converged'")
    reads = getattr(family, "reads", None)
    require(
        isinstance(reads, MomentSums | Iterations | FoldRows),
        "reads",
        "MomentSums(), Iterations() or FoldRows()",
    )


def unregister_family(family: Family) -> None:
    """Take a family back: its types are fitted one by one from then on.

    Parameters
    ----------
    family : Family
        The instance that was registered. Types that another family has taken over stay with that one.
    """
    _families.remove(family, *family.serves)


def register_affine_step(step: A) -> A:
    """Let an affine step map moments in every search of this process; returns it.

    A later registration for the same type replaces the earlier one.

    Parameters
    ----------
    step : AffineStep
        An instance.

    Returns
    -------
    AffineStep
        The same object.
    """
    _affine_steps.register(step, *step.serves)
    return step


def family_of(cls: type) -> Family | None:
    """The family that serves exactly this type of estimator.

    Returns
    -------
    Family or None
        None if none is registered for `cls` itself; those of its bases do not count.
    """
    return _families.get(cls)


def affine_step_of(cls: type) -> AffineStep | None:
    """The affine step that serves exactly this type of estimator.

    Returns
    -------
    AffineStep or None
        None if none is registered for `cls` itself; those of its bases do not count.
    """
    return _affine_steps.get(cls)


def register_column_step(step: ColumnStep) -> None:
    """Let a step read the columns of folds in every search of this process."""
    _column_steps.register(step, *step.serves)


def register_sparse_step(step: SparseStep) -> None:
    """Let a step be fitted to sparse rows in chunks in every search of this process."""
    _sparse_steps.register(step, *step.serves)


column_step_of, sparse_step_of = _column_steps.get, _sparse_steps.get
