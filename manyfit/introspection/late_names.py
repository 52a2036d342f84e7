"""Names of a package that are imported when they are first read."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def late_names(package: str, *modules: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package with the names that its modules list in their ``__all__``.

    The modules are imported one after the other until one has the name. The ``__all__`` of the package is its
    own or that of the last module.
    """

    def get(name: str) -> Any:
        """Import a name."""
        if not name.startswith("_") or name == "__all__":
            for module in modules:
                found = import_module(f"{package}.{module}")
                if name in found.__all__ or (name == "__all__" and module == modules[-1]):
                    # Two threads get the same value.
                    return vars(sys.modules[package]).setdefault(name, getattr(found, name))
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        """All names, for completion."""
        own = vars(sys.modules[package])
        return sorted({*(own.get("__all__") or get("__all__")), *own})

    return get, names
