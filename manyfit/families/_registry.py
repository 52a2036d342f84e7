"""The families and affine steps that searches of this process know."""

from __future__ import annotations

from typing import TypeVar

from manyfit.families._protocol import AffineStep, Family, FoldRows, Iterations, MomentSums

_families: dict[type, Family] = {}
_affine_steps: dict[type, AffineStep] = {}

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
        If it does not inherit from `Family`, or `reads` is not one of the objects that say what it reads.
    """
    if not (isinstance(family, Family) and isinstance(family.reads, MomentSums | Iterations | FoldRows)):
        raise TypeError(
            f"{type(family).__name__} should inherit from manyfit.estimators.Family, and have `reads` set to "
            "MomentSums(), Iterations() or FoldRows()."
        )
    for cls in family.serves:
        _families[cls] = family
    return family


def unregister_family(family: Family) -> None:
    """Take a family back: its types are fitted one by one from then on.

    Parameters
    ----------
    family : Family
        The instance that was registered. Types that another family has taken over stay with that one.
    """
    for cls in family.serves:
        if _families.get(cls) is family:
            del _families[cls]


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
    for cls in step.serves:
        _affine_steps[cls] = step
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
