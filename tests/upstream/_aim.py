"""scikit-learn's own test modules, with some of the names that they import replaced by ours."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import sklearn.metrics
from _pytest.fixtures import FixtureFunctionDefinition

from manyfit import metrics


def aimed(module: str, names: Mapping[str, Mapping[str, Any]]) -> ModuleType:
    """Import one of scikit-learn's test modules afresh so that it sees other objects under some names.

    Parameters
    ----------
    module : str
        The test module. It stays imported, so that what it defines can be pickled.
    names : dict of str to dict
        For each module that it imports from, the names to replace. They are put back afterwards; the
        replacement must be there while the module is imported, since its parametrisations hold the classes.
    """
    sys.modules.pop(module, None)
    with _replaced(names):
        return importlib.import_module(module)


def copied(module: str, name: str, names: Mapping[str, Mapping[str, Any]]) -> ModuleType:
    """Run the source of one of scikit-learn's modules again, as another module that sees other objects.

    Parameters
    ----------
    module : str
        The module, which stays as it is.
    name : str
        The name of the copy, in the package of `module`. The copy stays imported, so that what it defines can
        be pickled.
    names : dict of str to dict
        See `aimed`.
    """
    source = importlib.import_module(module).__file__
    assert source is not None
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None and spec.loader is not None
    copy = sys.modules[name] = importlib.util.module_from_spec(spec)
    with _replaced(names):
        spec.loader.exec_module(copy)
    return copy


def exported_by(module: ModuleType) -> dict[str, Any]:
    """The tests of a module, and what they get by the names of arguments."""
    return {
        name: value
        for name, value in vars(module).items()
        if name.startswith("test_") or isinstance(value, FixtureFunctionDefinition)
    }


def metric_names() -> dict[str, dict[str, Any]]:
    """Our metric functions and scorers in place of scikit-learn's."""
    pairwise = {name: getattr(metrics.pairwise, name) for name in metrics.pairwise.__all__}
    ours = {
        name: getattr(metrics, name)
        for name in metrics.__all__
        if hasattr(sklearn.metrics, name) and name not in ("cluster", "pairwise")
    }
    return {"sklearn.metrics": ours, "sklearn.metrics.pairwise": pairwise}


@contextmanager
def _replaced(names: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Within it some names of some modules stand for other objects."""
    kept = {
        place: {name: getattr(importlib.import_module(place), name) for name in names[place]}
        for place in names
    }
    try:
        _set(names)
        yield
    finally:
        _set(kept)


def _set(names: Mapping[str, Mapping[str, Any]]) -> None:
    for place, values in names.items():
        for name, value in values.items():
            setattr(sys.modules[place], name, value)
