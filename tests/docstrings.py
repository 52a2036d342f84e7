"""Check the docstrings of all public names: ``python -m tests.docstrings``.

Public are the names in the ``__all__`` of a room, and the public methods and properties that manyfit itself
defines on those classes. The checks are numpydoc's, chosen in ``[tool.numpydoc_validation]`` of
pyproject.toml, with five exceptions:

- a method may have a short text without sections in a room that serves other rooms, not the user;
- a record (dataclass, named tuple) may describe its fields as attributes instead of parameters;
- a class without a constructor of its own (a Protocol, an exception) has no parameters to describe;
- a class that stands for scikit-learn's of the same name has its text;
- what is scikit-learn's own, passed on under its name, is not looked at.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
WITHOUT_FRONT = {"introspection", "_compat", "_config"}  # rooms for other rooms only, or private packages
# Rooms whose names serve other rooms only: a docstring of one to three lines is enough for these.
INNER_ROOMS = {"arrays", "folds"}
USERS_ROOMS = {"model_selection", "joblib_backend"}
IN_SHORT = {"GL08", "SS01", "SS03", "SS04", "SS06"}  # what holds for a docstring of one line, too
SECTIONS = {"PR01", "RT01", "YD01"}  # numpydoc's complaints about a section that is not there


def checks() -> frozenset[str]:
    settings = tomllib.loads(PYPROJECT.read_text())
    return frozenset(settings["tool"]["numpydoc_validation"]["checks"])


def public_objects(package: str) -> Iterator[tuple[str, Any]]:
    """The import path and the object of each public class, function, method and property."""
    room = importlib.import_module(package)
    for name in room.__all__:
        value = getattr(room, name)
        if _is_others(value, package) or (inspect.isclass(value) and _described_elsewhere(value)):
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{package}.{name}", value
        if inspect.isclass(value):
            yield from _members(f"{package}.{name}", value)


def _is_others(value: Any, package: str) -> bool:
    """Whether a name is another project's, passed on as it is."""
    home = getattr(value, "__module__", None) or package
    return home.partition(".")[0] != package.partition(".")[0]


def _described_elsewhere(cls: type) -> bool:
    """Whether a class stands for another project's of the same name, whose text it has."""
    base = cls.__mro__[1]
    return (
        base.__name__ == cls.__name__
        and base.__module__.partition(".")[0] != cls.__module__.partition(".")[0]
    )


def _members(path: str, cls: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(cls).items():
        documented = inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
        # An override without a text of its own has that of the method it overrides.
        inherits = member.__doc__ is None and inspect.getdoc(getattr(cls, name))
        if documented and not name.startswith("_") and not inherits:
            yield f"{path}.{name}", member


def complaints(package: str) -> list[str]:
    """What is wrong with the docstrings of one room, a line each."""
    wanted = checks()
    found = [] if importlib.import_module(package).__doc__ else [f"{package}: GL08 no docstring"]
    for path, value in public_objects(package):
        spared = _spared(path, value, package)
        if package.rpartition(".")[2] in INNER_ROOMS:
            spared = wanted - IN_SHORT
        errors = [(code, text) for code, text in validate(path)["errors"] if code in wanted - spared]
        found += [f"{path}: {code} {text}" for code, text in errors]
    return found


def _spared(path: str, value: Any, package: str) -> set[str]:
    if inspect.isclass(value):
        described = _lists_attributes(value) or not _constructs(value)
        return {"PR01", "PR02", "PR03"} if described else set()
    is_method = path.count(".") > package.count(".") + 1
    serves_rooms = package.rpartition(".")[2] not in USERS_ROOMS
    return SECTIONS if is_method and serves_rooms else set()


def _lists_attributes(cls: type) -> bool:
    listed = {entry.name for entry in NumpyDocString(inspect.getdoc(cls) or "")["Attributes"]}
    return bool(listed) and set(inspect.signature(cls).parameters) <= listed


def _constructs(cls: type) -> bool:
    """Whether the project that defines a class, and not a base from elsewhere, says how it is made."""
    own = cls.__module__.partition(".")[0]
    bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == own]
    bases = [base for base in bases if not getattr(base, "_is_protocol", False)]
    return any(name in vars(base) for base in bases for name in ("__init__", "__new__"))


def rooms(package: str = "manyfit") -> list[str]:
    """Import path of each room with a front, the packages one level below `package`."""
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return [
        f"{package}.{module.name}" for module in found if module.ispkg and module.name not in WITHOUT_FRONT
    ]


def main() -> int:
    names = rooms()
    found = [line for room in names for line in complaints(room)]
    checked = sum(1 for room in names for _ in public_objects(room))
    print(*found, f"docstrings: {checked} public names checked, {len(found)} complaints", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
