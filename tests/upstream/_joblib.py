"""joblib's own test modules, aimed at our backend: their text, with our names in it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import joblib.test
from joblib.parallel import BACKENDS

import manyfit.joblib_backend  # noqa: F401 - registers the backend


def aimed(module: str, changes: Sequence[tuple[str, str]]) -> ModuleType:
    """Import one of joblib's test modules afresh, with some of its text replaced.

    What it defines is pickled by its name as long as no other is imported so; workers then find joblib's own.

    Its tests over all backends make an instance of each when they are imported, which ours, asked by name,
    refuses where there is no cluster: it is not registered meanwhile.
    """
    path = Path(joblib.test.__file__).parent / f"{module}.py"
    text = path.read_text()
    for theirs, ours in changes:
        assert theirs in text, theirs
        text = text.replace(theirs, ours)
    name = f"joblib.test.{module}"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(path))
    assert spec is not None
    found = sys.modules[name] = importlib.util.module_from_spec(spec)
    ours = BACKENDS.pop("manyfit")
    try:
        exec(compile(text, str(path), "exec"), vars(found))
    finally:
        BACKENDS["manyfit"] = ours
    return found
