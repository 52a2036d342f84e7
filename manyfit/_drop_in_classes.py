"""Classes of ours that stand for scikit-learn's of the same name: how one is found from the other."""

from __future__ import annotations

__all__ = ["register_drop_in", "sklearn_class_of"]

_TWIN = "_manyfit_twin"


def register_drop_in(cls: type, twin: type) -> None:
    """Say that a class of ours does on host data what scikit-learn's class does, and is shared as that is."""
    setattr(cls, _TWIN, twin)


def sklearn_class_of(cls: type) -> type:
    """scikit-learn's class for one of ours, any other class itself.

    Parameters
    ----------
    cls : type
        Any class. A subclass that a user makes of one of ours is no twin of scikit-learn's: it may override
        anything.

    Returns
    -------
    type
        Where both are searched, they are planned and shared alike.
    """
    twin: type = vars(cls).get(_TWIN, cls)
    return twin
