"""Classes of manyfit that stand for scikit-learn's classes of the same names."""

from __future__ import annotations

_SKLEARN_CLASS = "_manyfit_twin"


def register_drop_in(cls: type, sklearn_class: type) -> None:
    """Declare that a class works as scikit-learn's on host data, so that searches share its fits alike."""
    setattr(cls, _SKLEARN_CLASS, sklearn_class)


def sklearn_class_of(cls: type) -> type:
    """scikit-learn's class that a drop-in class stands for; any other class itself.

    A user's subclass of a drop-in class stands only for itself, because it may override anything.
    """
    sklearn_class: type = vars(cls).get(_SKLEARN_CLASS, cls)
    return sklearn_class
