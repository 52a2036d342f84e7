"""Write the stubs of modules whose names are made at run time: ``python -m tests.stubs``.

Type checkers do not run code, so they know none of these names. The stubs are those of the newest supported
scikit-learn; older ones lack some of the names. `tests/test_typing.py` compares stubs and modules.
"""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyfit.estimators._catalog import CATALOG

ROOT = Path(__file__).parent.parent
# Each module, and where its names are scikit-learn's.
MODULES = {
    "manyfit.estimators._drop_ins": "",  # each in a module of its own: see the catalog
    "manyfit.metrics._published": "sklearn.metrics",
    "manyfit.metrics.cluster": "sklearn.metrics.cluster",
    "manyfit.metrics.pairwise": "sklearn.metrics.pairwise",
    "manyfit.model_selection.validation._published": "sklearn.model_selection",
}
METRICS = "manyfit.metrics._published"
HEAD = '"""Written by ``python -m tests.stubs``: names that are made at run time, for type checkers."""\n'
# What `metric.many` is to a type checker.
DECORATOR = '''
_P = ParamSpec("_P")

class Metric(Protocol[_P]):
    """A metric function; `many` takes the predictions of many settings at once."""

    many: Callable[..., Any]

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...

def _metric(function: Callable[_P, Any]) -> Metric[_P]: ...
'''


def path_of(module: str) -> Path:
    """The stub of a module."""
    return ROOT / (module.replace(".", "/") + ".pyi")


def names_of(module: Any) -> list[str]:
    """The public names of a module."""
    return sorted(module.__all__)


def stub(name: str) -> str:
    """The text of the stub of a module."""
    module, theirs = importlib.import_module(name), MODULES[name]
    lines = [line for public in names_of(module) for line in _declared(name, module, public, theirs)]
    imports = [line for line in lines if line.startswith("from")]
    rest = [line for line in lines if not line.startswith("from")]
    typing = ["from typing import Any"] if rest else []
    if any(line.startswith("@_metric") for line in rest):
        typing = ["from collections.abc import Callable", "from typing import Any, ParamSpec, Protocol"]
        rest.insert(0, DECORATOR)
    if any(line.startswith("class") for line in rest):
        imports.append(f"import {theirs}")
    names = textwrap.fill(
        ", ".join(f'"{public}"' for public in names_of(module)),
        100,
        initial_indent=4 * " ",
        subsequent_indent=4 * " ",
    )
    exported = f"__all__ = [\n{names}\n]  # fmt: skip"
    return "\n".join([HEAD, *typing, *imports, exported, *rest]) + "\n"


def _declared(module_name: str, module: Any, name: str, theirs: str) -> Iterator[str]:
    """A name as a stub has it: imported from where it is, or declared."""
    if not theirs:
        yield f"from {CATALOG[name].module} import {name} as {name}"
        return
    value = vars(module).get(name)
    metrics = importlib.import_module(METRICS)
    if module is not metrics and value is not None and value is vars(metrics).get(name):
        yield f"from {METRICS} import {name} as {name}"
    elif not str(getattr(value, "__module__", None)).startswith("manyfit."):
        yield f"from {theirs} import {name} as {name}"
    elif inspect.isclass(value):
        yield f"class {name}({theirs}.{name}): ..."
    else:
        if getattr(value, "many", None) is not None:
            yield "@_metric"
        yield f"def {name}({_parameters(value)}) -> {_returned(value)}: ..."


def _parameters(function: Any) -> str:
    """The parameters of a function, of any type: scikit-learn does not tell types."""
    found, keywords = [], False
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            keywords = True
        if one.kind is one.KEYWORD_ONLY and not keywords:
            keywords = True
            found.append("*")
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = "" if one.default is one.empty else " = ..."
        found.append(f"{star}{one.name}: Any{default}")
        if one.kind is one.POSITIONAL_ONLY:
            raise NotImplementedError(f"{function.__name__} has a positional-only parameter")
    return ", ".join(found)


def _returned(function: Any) -> str:
    text = inspect.signature(function).return_annotation
    return text if isinstance(text, str) else "list[Any]" if "list" in str(text) else "Any"


def formatted(text: str) -> str:
    """A stub as ruff sorts its imports and formats it."""
    for command in (["check", "--fix-only", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", "manyfit/stub.pyi", "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main() -> None:
    """Write all stubs."""
    for name in MODULES:
        path_of(name).write_text(formatted(stub(name)))


if __name__ == "__main__":
    main()
