"""The code of functions, for digests that are the same in every process."""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The versions of these packages count in every search.
_LIBRARIES = frozenset(("builtins", "manyfit", "numpy", "scipy", "sklearn")) | sys.stdlib_module_names


_INSTALLED = {"site-packages", "dist-packages"}


def package_version(module: str | None) -> str | None:
    """The version of the package of a module; None if it has none, or counts in every search."""
    package = str(module).partition(".")[0]
    version = None if package in _LIBRARIES else getattr(sys.modules.get(package), "__version__", None)
    return version if isinstance(version, str) else None


def is_library_module(module: str) -> bool:
    """Whether a module belongs to an installed package with a version, which then stands for its code."""
    package = module.partition(".")[0]
    file = getattr(sys.modules.get(package), "__file__", None)
    installed = isinstance(file, str) and bool(_INSTALLED & set(Path(file).parts))
    return module != "__main__" and (
        package in _LIBRARIES or (installed and package_version(module) is not None)
    )


def is_importable(thing: Any) -> bool:
    """Whether an import by name finds this function or class."""
    module = getattr(thing, "__module__", None)
    found: Any = sys.modules.get(module) if isinstance(module, str) and module != "__main__" else None
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is thing


def code_parts(code: types.CodeType) -> tuple[Any, ...]:
    """The parts of a code object that say what it does: not its line numbers."""
    inner = tuple(code_parts(one) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return (
        code.co_code, getattr(code, "co_exceptiontable", b""), code.co_names, code.co_varnames,
        code.co_freevars, code.co_cellvars, code.co_argcount, code.co_posonlyargcount,
        code.co_kwonlyargcount, code.co_flags, inner,
    )  # fmt: skip


def names_read(function: types.FunctionType) -> dict[str, Any]:
    """The global names that a function and its inner functions read, with their values."""
    names = sorted(set(_global_names(function.__code__)))
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _global_names(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)
