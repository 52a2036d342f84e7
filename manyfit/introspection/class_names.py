"""Classes and functions of other libraries by the names under which users import them.

Nothing is imported to compare them: the class of an object is imported already, with all that leads to it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Generic, TypeVar

from manyfit._config import set_in_block

T = TypeVar("T")
_SKLEARN_CLASS = "_manyfit_twin"
# Whether a table imports a module, of all tables: a module for one may import modules for others.
_importing: ContextVar[bool] = ContextVar("manyfit_importing", default=False)

# Methods whose results families and steps give without calling them.
_METHODS = (
    "fit", "transform", "fit_transform", "predict", "predict_proba", "predict_log_proba", "decision_function"
)  # fmt: skip


def public_name(thing: Any) -> str:
    """The name under which users import a class or function, ``sklearn.svm.SVC``; empty if another has it."""
    module = (thing.__module__ or "").partition("._")[0]
    name = f"{module}.{thing.__name__}"
    return name if imported(name) is thing else ""


def is_instance(thing: Any, *names: str) -> bool:
    """`isinstance`, for classes by their public names."""
    return isinstance(thing, tuple(cls for name in names if (cls := imported(name)) is not None))


def imported(name: str) -> Any:
    """What a dotted name stands for; None if its module is not imported."""
    module, _, attribute = name.rpartition(".")
    return getattr(sys.modules.get(module), attribute, None)


def has_own_methods(cls: type) -> bool:
    """Whether no method of a class that a search calls was replaced by one of another package.

    A wrapper by `functools.wraps` counts as the method that it wraps.
    """
    packages = {cls.__module__.partition(".")[0], "sklearn"}
    for name in _METHODS:
        module = getattr(getattr(cls, name, None), "__module__", None)
        if module is not None and module.partition(".")[0] not in packages:
            return False
    return True


class ClassTable(Generic[T]):
    """One object for each class that it serves, by exact type.

    `modules` has manyfit's modules by public names of classes. The first question about such a class imports
    its module, which registers what serves it. The class is served as long as its methods are its own.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = modules
        self._served: dict[type, T] = {}

    def get(self, cls: type) -> T | None:
        """What serves exactly this class, or None."""
        module = self.modules.get(public_name(cls))
        if module is None:
            return self._served.get(cls)
        if cls not in self._served:
            with set_in_block(_importing, True):
                import_module(module)  # another thread that imports it is waited for
        return self._served.get(cls) if has_own_methods(cls) else None

    def register(self, served: T, *classes: type) -> None:
        """Let an object serve classes, in place of any that does."""
        for cls in classes:
            if _importing.get() and public_name(cls) not in self.modules:
                continue  # another class stands in the place of scikit-learn's
            self.get(cls)  # or the import would later replace it
            self._served[cls] = served

    def remove(self, served: T, *classes: type) -> None:
        """Let classes be served by nothing, where this object serves them."""
        for cls in classes:
            if self._served.get(cls) is served:
                del self._served[cls]


def register_drop_in(cls: type, sklearn_class: type) -> None:
    """Declare that a class works as scikit-learn's on host data, so that searches share its fits alike."""
    setattr(cls, _SKLEARN_CLASS, sklearn_class)


def sklearn_class_of(cls: type) -> type:
    """scikit-learn's class that a drop-in class stands for; any other class itself.

    A user's subclass of a drop-in class stands only for itself, because it may override anything.
    """
    sklearn_class: type = vars(cls).get(_SKLEARN_CLASS, cls)
    return sklearn_class
