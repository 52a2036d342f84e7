"""What manyfit asks of a namespace of arrays is there in every library that is installed."""

from __future__ import annotations

import ast
import functools
import inspect
from pathlib import Path
from typing import Any

import pytest

import manyfit


@functools.cache
def _asked() -> dict[str, list[tuple[str, int, tuple[str, ...]]]]:
    """Names behind ``xp.``, and of each call of one: where, how many arguments by place, which by name."""
    found: dict[str, list[Any]] = {}
    root = Path(manyfit.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and (name := _behind_xp(node)):
                found.setdefault(name, [])
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = _behind_xp(node.func)
                if name and not any(isinstance(one, ast.Starred) for one in node.args):
                    where = f"{path.relative_to(root)}:{node.lineno}"
                    names = tuple(word.arg for word in node.keywords if word.arg)
                    found.setdefault(name, []).append((where, len(node.args), names))
    return found


def _behind_xp(node: ast.Attribute) -> str | None:
    """``linalg.inv`` of ``xp.linalg.inv``, whoever has the ``xp``."""
    names, value = [node.attr], node.value
    while isinstance(value, ast.Attribute):
        if value.attr == "xp":
            return ".".join(names)
        names.insert(0, value.attr)
        value = value.value
    return ".".join(names) if isinstance(value, ast.Name) and value.id == "xp" else None


def test_names_are_found():
    asked = _asked()
    assert {"asarray", "linalg.diagonal", "where", "float64"} <= set(asked)
    assert len(asked) > 60 and all(len(calls) > 20 for calls in (asked["where"], asked["sum"]))
    assert any("axis" in names for _, _, names in asked["sum"])


def test_every_name_is_there(xp: Any):
    missing = []
    for name in _asked():
        try:
            functools.reduce(getattr, name.split("."), xp)
        except AttributeError:
            missing.append(name)
    assert not missing


def test_every_call_has_arguments_that_are_taken(xp: Any):
    wrong = []
    for name, calls in _asked().items():
        function = functools.reduce(getattr, name.split("."), xp)
        if not callable(function) or isinstance(function, type):
            continue
        try:
            signature = inspect.signature(function)
        except ValueError:  # built in
            continue
        for where, n, names in calls:
            try:
                signature.bind(*range(n), **dict.fromkeys(names))
            except TypeError as error:
                wrong.append(f"{where}: {name}: {error}")
    assert not wrong


@pytest.mark.parametrize("code", ["xp.nothing(x)", "self.xp.sum(x, axes=1)", "a.xp.linalg.inv(x, x, x)"])
def test_what_is_wrong_is_seen(code, monkeypatch, tmp_path):
    import array_api_strict

    (tmp_path / "wrong.py").write_text(code)
    monkeypatch.setattr(manyfit, "__file__", str(tmp_path / "__init__.py"))
    _asked.cache_clear()
    with pytest.raises((AssertionError, AttributeError)):
        test_every_call_has_arguments_that_are_taken(array_api_strict)
    _asked.cache_clear()
