"""What a function does, as far as its code says: for digests that another process comes to as well."""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Iterator
from typing import Any

# Packages whose versions are part of what a search depends on; what they define goes by its name.
_LIBRARIES = frozenset(("builtins", "manyfit", "numpy", "scipy", "sklearn")) | sys.stdlib_module_names


def package_version(module: str) -> str | None:
    """The version of the package that a module belongs to, if it is loaded and says so."""
    version = getattr(sys.modules.get(module.partition(".")[0]), "__version__", None)
    return version if isinstance(version, str) else None


def of_library(module: str) -> bool:
    """Whether the version of manyfit, scikit-learn, NumPy, SciPy or Python says what a module does."""
    return module.partition(".")[0] in _LIBRARIES and module != "__main__"


def importable(thing: Any) -> bool:
    """Whether a function or class is what another process finds by its name."""
    module = getattr(thing, "__module__", None)
    found: Any = sys.modules.get(module) if isinstance(module, str) and module != "__main__" else None
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is thing


def code_parts(code: types.CodeType) -> tuple[Any, ...]:
    """What a code object does, without where it stands; constants with their types."""
    inner = tuple(code_parts(one) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return (
        code.co_code, getattr(code, "co_exceptiontable", b""), code.co_names, code.co_varnames,
        code.co_freevars, code.co_cellvars, code.co_argcount, code.co_posonlyargcount,
        code.co_kwonlyargcount, code.co_flags, inner,
    )  # fmt: skip


def names_read(function: types.FunctionType) -> dict[str, Any]:
    """The global names that a function and those within it read, and what they stand for now."""
    names = sorted(set(_global_names(function.__code__)))
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _global_names(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)
