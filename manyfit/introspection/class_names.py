"""Classes and functions of other libraries by the names under which users import them.

Nothing is imported to compare them: the class of an object is imported already, with all that leads to it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

T = TypeVar("T")


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


class ClassTable(Generic[T]):
    """One object for each class that it serves, by exact type.

    `modules` has manyfit's modules by public names of classes. A module is imported when `get` is first
    asked for one of its classes, and then registers its objects.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = modules
        self._served: dict[type, T] = {}

    def get(self, cls: type) -> T | None:
        """What serves exactly this class, or None."""
        if cls not in self._served:
            module = self.modules.get(public_name(cls))
            if module is not None:
                import_module(module)  # another thread that imports it is waited for
        return self._served.get(cls)

    def register(self, served: T, *classes: type) -> None:
        """Let an object serve classes, in place of any that does."""
        for cls in classes:
            self.get(cls)  # or the import would later replace it
            self._served[cls] = served

    def remove(self, served: T, *classes: type) -> None:
        """Let classes be served by nothing, where this object serves them."""
        for cls in classes:
            if self._served.get(cls) is served:
                del self._served[cls]
