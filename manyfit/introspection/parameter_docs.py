"""Docstrings that leave out the parameters which another docstring describes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])
# The section on parameters: all lines up to an empty one; and its entries.
_SECTION = re.compile(r"(?<=Parameters\n----------\n)(?:.+\n)*")
_ENTRY = re.compile(r"\S.*\n(?: .*\n)*")


def complete_parameters(*sources: Callable[..., Any]) -> Callable[[Documented], Documented]:
    """Add the parameters that the docstring of a class or function leaves out, in the order of its signature.

    They read as in the first of `sources` that describes them.
    """

    def complete(thing: Documented) -> Documented:
        if thing.__doc__ is None:  # with ``python -OO``
            return thing
        known: dict[str, str] = {}
        for source in (*reversed(sources), thing):
            known |= _descriptions(source)
        described = "".join(known[name] for name in inspect.signature(thing).parameters)
        thing.__doc__ = _SECTION.sub(lambda _: described, inspect.cleandoc(thing.__doc__), count=1)
        return thing

    return complete


def _descriptions(thing: Callable[..., Any]) -> dict[str, str]:
    """The entries of the section on parameters, by name."""
    (section,) = _SECTION.findall(inspect.getdoc(thing) or "")
    return {entry.partition(" : ")[0]: entry for entry in _ENTRY.findall(section)}
