"""The code of functions: its parts, for digests that are the same in every process, and whether it draws."""

from __future__ import annotations

import dis
import random
import sys
import types
from collections import ChainMap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

# The versions of these packages count in every search.
_LIBRARIES = frozenset(("builtins", "manyfit", "numpy", "scipy", "sklearn")) | sys.stdlib_module_names
_INSTALLED = {"site-packages", "dist-packages"}

GENERATORS = (
    np.random.RandomState,
    np.random.Generator,
    np.random.BitGenerator,
    np.random.SeedSequence,
    random.Random,
)
_MODULES = (np.random, random)
_MODULE_NAMES = frozenset(module.__name__ for module in _MODULES)
# What these modules make from a seed; without one, they draw it.
_SEEDED = frozenset(
    ("MT19937", "PCG64", "PCG64DXSM", "Philox", "Random", "RandomState", "SFC64", "default_rng")
)
# Imported in a function, they may be called without a seed.
_DRAWN_NAMES = _SEEDED | {"random"}
# They draw nothing by themselves.
_DRAW_NOTHING = frozenset(("BitGenerator", "Generator", "SeedSequence"))
_MAKERS = tuple(getattr(module, name) for module in _MODULES for name in _SEEDED if hasattr(module, name))
_BETWEEN = frozenset(("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"))
_LOAD_ATTRIBUTE = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
# Code is not read any further.
_MOST_READ = 300


def package_version(module: str | None) -> str | None:
    """The version of the package of a module; None if it has none, or counts in every search."""
    package = str(module).partition(".")[0]
    version = None if package in _LIBRARIES else getattr(sys.modules.get(package), "__version__", None)
    return version if isinstance(version, str) else None


def is_library_module(module: str) -> bool:
    """Whether a module belongs to an installed package with a version, which then stands for its code."""
    package = module.partition(".")[0]
    if package in _LIBRARIES or module == "__main__":
        return package in _LIBRARIES
    file = getattr(sys.modules.get(package), "__file__", None)
    installed = isinstance(file, str) and bool(_INSTALLED & set(Path(file).parts))
    return installed and package_version(module) is not None


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


def cell_content(cell: types.CellType) -> Any:
    """What a cell of a function's closure holds; None if it is not set yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


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


# Random numbers


def code_draws(thing: Any) -> bool:
    """Whether a function draws random numbers, or a method of a class, as far as their code shows it.

    Code of installed packages is not read: their tags and parameters say what they draw. Functions that the
    code calls by a global name are read, too. Code that cannot be read may draw.
    """
    try:
        return _draws(thing, set())
    except Exception:
        return True


def _draws(thing: Any, seen: set[int]) -> bool:
    if id(thing) in seen or len(seen) > _MOST_READ:
        return False
    seen.add(id(thing))
    if isinstance(thing, GENERATORS):
        return True
    if isinstance(thing, type):
        return any(_draws(one, seen) for cls in thing.__mro__ for one in _members(cls))
    if isinstance(thing, types.BuiltinFunctionType | types.MethodType):
        # ``random.random`` and ``numpy.random.normal`` are methods of a generator.
        owner, function = thing.__self__, getattr(thing, "__func__", None)
        return isinstance(owner, GENERATORS) or _draws(function, seen)
    if not isinstance(thing, types.FunctionType) or is_library_module(thing.__module__ or ""):
        return False
    cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
    held = {name: cell_content(cell) for name, cell in cells}
    defaults = [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
    if any(isinstance(one, GENERATORS) for one in defaults):
        return True
    return _code_draws(thing.__code__, ChainMap(held, thing.__globals__), seen)


def _members(cls: type) -> Iterator[Any]:
    """The functions that a class of a user defines, and its generators."""
    for value in () if is_library_module(cls.__module__) else vars(cls).values():
        parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
        for part in parts:
            member = getattr(part, "__func__", getattr(part, "func", part))
            if isinstance(member, (types.FunctionType, *GENERATORS)):
                yield member


def _code_draws(code: types.CodeType, values: Mapping[str, Any], seen: set[int]) -> bool:
    steps = [step for step in dis.get_instructions(code) if step.opname not in _BETWEEN]
    source: Any = None  # the value that the step before has loaded, if it is known
    for step, following in pairwise(steps):
        name = step.argval if isinstance(step.argval, str) else ""
        before, source = source, None
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            source = values.get(name)
        elif step.opname.startswith("IMPORT_") and (name in _MODULE_NAMES or name in _DRAWN_NAMES):
            return True
        elif step.opname in _LOAD_ATTRIBUTE and isinstance(before, types.ModuleType):
            if before in _MODULES and name not in _DRAW_NOTHING | _SEEDED:
                return True
            source = vars(before).get(name)  # a module may import, or fail, if it is asked for a name
        elif step.opname in _LOAD_ATTRIBUTE and name == "random" and following.opname in _LOAD_ATTRIBUTE:
            source = np.random  # ``np.random.normal`` of an import in the function
        if isinstance(source, types.ModuleType):
            if source in _MODULES and following.opname not in _LOAD_ATTRIBUTE:
                return True  # it gets another name
        elif any(source is maker for maker in _MAKERS):
            if not _has_seed(following):
                return True
        elif _draws(source, seen):
            return True
    return any(_code_draws(one, values, seen) for one in code.co_consts if isinstance(one, types.CodeType))


def _has_seed(following: dis.Instruction) -> bool:
    """Whether what follows the name of a function gives it a seed."""
    unseeded = following.opname == "CALL" and not following.arg
    return not (unseeded or (following.opname == "LOAD_CONST" and following.argval is None))
