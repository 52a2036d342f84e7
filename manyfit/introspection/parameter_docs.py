"""Docstrings of classes that leave out the parameters which another class describes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

Documented = TypeVar("Documented", bound=type)
_HEADING = "Parameters\n----------\n"


def complete_parameters(*sources: type) -> Callable[[Documented], Documented]:
    """Add the parameters that the docstring of a class leaves out, in the order of its constructor.

    They read as in the first of `sources` that describes them.
    """

    def complete(cls: Documented) -> Documented:
        if cls.__doc__ is None:  # with ``python -OO``
            return cls
        text = inspect.cleandoc(cls.__doc__)
        known: dict[str, str] = {}
        for source in reversed(sources):
            known |= _descriptions(inspect.getdoc(source) or "")
        known |= _descriptions(text)
        head, heading, body = text.partition(_HEADING)
        _, gap, tail = body.partition("\n\n")
        described = [known[name] for name in inspect.signature(cls).parameters]
        cls.__doc__ = head + heading + "\n".join(described) + gap + tail
        return cls

    return complete


def _descriptions(text: str) -> dict[str, str]:
    """The entries of the section on parameters, by name."""
    section, _, _ = text.partition(_HEADING)[2].partition("\n\n")
    return {entry.partition(" : ")[0]: entry for entry in re.split(r"\n(?=\S)", section)}
