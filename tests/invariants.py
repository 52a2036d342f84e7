"""The invariants of the project: each is a marker on the tests that hold it.

``python -m pytest --invariants`` prints them.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent


@functools.cache  # several tests read the list
def invariants(folder: Path = TESTS) -> dict[str, list[str]]:
    """The sentence of each ``@pytest.mark.invariant`` under a folder, with its tests.

    The files are parsed, not imported, so that the list takes no longer than reading them.
    """
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        source = path.read_text()
        for node in ast.parse(source).body if "mark.invariant" in source else ():
            for sentence in _sentences(node):
                name = f"{path.relative_to(folder.parent)}::{getattr(node, 'name', '')}"
                found.setdefault(sentence, []).append(name)
    return found


def _sentences(node: ast.AST) -> Iterator[str]:
    for decorator in getattr(node, "decorator_list", ()):
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.invariant":
            yield ast.literal_eval(decorator.args[0])


def as_text(found: dict[str, list[str]]) -> str:
    """The invariants in alphabetical order, each followed by its tests."""
    lines = [
        f"{sentence}\n" + "".join(f"    {name}\n" for name in found[sentence]) for sentence in sorted(found)
    ]
    return "".join(lines) + f"\n{len(found)} invariants\n"
