"""Fixtures for the tests of all rooms."""

from __future__ import annotations

import gc
import importlib
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import array_api_compat as compat
import dask
import numpy as np
import pytest
from hypothesis import settings

from manyfit.arrays import _host_fallback
from tests import _covering
from tests._shortcuts import fork_joblib_workers, take_shortcuts
from tests.invariants import as_text, invariants

# No deadline, since a shared machine's pauses are no defect; and the same examples on each run, so that a red
# suite means a change. `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("manyfit", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("manyfit")


def pytest_configure(config: pytest.Config) -> None:
    _covering.MAKES_THOROUGH_CASES = "not thorough" not in config.option.markexpr
    take_shortcuts()
    fork_joblib_workers()


# Modules and tests stay to the end: a search for garbage among them would take seconds, here and in tests.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# A shell starts what it runs in the background deaf to Ctrl-C, which tests imitate.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--invariants", action="store_true", help="list the invariants with their tests, run none"
    )
    parser.addoption(
        "--cases", type=int, help="run at most so many cases of each test, the first and the last ones"
    )
    parser.addoption("--tests", type=int, help="run at most so many tests of each module, evenly spread")


@pytest.hookimpl(wrapper=True)  # before and after -m, -k and --deselect
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    _mark_thorough(items)
    yield
    _leave_out(config, items)


def _mark_thorough(items: list[pytest.Item]) -> None:
    """Of tests with the mark ``cases(n)``, the cases that are not chosen."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("cases") and not item.get_closest_marker("thorough"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        (n,) = cases[0].get_closest_marker("cases").args
        chosen = _covering.few(cases, n, lambda case: case.callspec.indices.items())
        for case in {*cases}.difference(chosen):
            case.add_marker("thorough")


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What --cases and --tests do not run."""
    most_cases, most_tests = config.getoption("--cases"), config.getoption("--tests")
    if most_cases is most_tests is None:
        return
    modules: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        modules.setdefault(name.partition("::")[0], {}).setdefault(name, []).append(item)
    kept: set[int] = set()
    for tests in modules.values():
        for cases in _covering.evenly(list(tests.values()), most_tests):
            n = len(cases) if most_cases is None else most_cases
            kept |= {id(item) for item in (*cases[: n - n // 2], *cases[max(len(cases) - n // 2, 0) :])}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if not config.getoption("--invariants"):
        return None
    print(as_text(invariants()), end="")
    return 0


LIBRARIES = [
    "numpy",
    "array_api_strict",
    *(name for name in ("torch", "cupy") if find_spec(name)),
]


def _device(library: str, xp: Any) -> Any:
    """A device that is not the default, where the library has one: what forgets ``device=`` fails on it."""
    module = importlib.import_module(library)
    if library == "array_api_strict":
        return module.Device("device1")
    if library == "torch" and module.cuda.is_available():
        return module.device("cuda:0")
    return compat.device(xp.empty(0))


def _has_cuda() -> bool:
    import cupy

    try:
        return bool(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:  # no driver
        return False


@pytest.fixture(params=[pytest.param(n, marks=pytest.mark.gpu if n == "cupy" else ()) for n in LIBRARIES])
def xp(request: pytest.FixtureRequest) -> Any:
    """Namespace of each array library, as array-api-compat serves it."""
    if request.param == "cupy" and not _has_cuda():
        pytest.skip("no CUDA device")
    return compat.array_namespace(importlib.import_module(request.param).empty(0))


@pytest.fixture
def device(xp: Any) -> Any:
    """Device of `xp` to create arrays on, not the default one where there is another."""
    return _device(xp.__name__.removeprefix("array_api_compat."), xp)


@pytest.fixture(autouse=True)
def _a_generator_of_its_own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's `rng` starts anew for each test: its data do not depend on which tests ran before.

    With another seed than the module's own, so that nothing that a test draws is drawn for it already.
    """
    if isinstance(getattr(request.module, "rng", None), np.random.Generator):
        monkeypatch.setattr(request.module, "rng", np.random.default_rng(1))


@pytest.fixture(autouse=True)
def _no_client_that_is_gone() -> None:
    """Dask computes by itself again after a test whose client lost its scheduler before it was closed."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and dask.config.get("scheduler", None) == "dask.distributed":
        try:
            distributed.default_client()
        except ValueError:
            dask.config.set(scheduler=None)


@pytest.fixture(autouse=True)
def _every_warning_again() -> None:
    """A warning that another test has seen is shown again."""
    _host_fallback._warned.clear()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Hand the arguments of each call of a function to another one first: ``watch(owner, name, see)``."""

    def watched(owner: Any, name: str, see: Any) -> None:
        function = getattr(owner, name)

        def seen(*args: Any, **kwargs: Any) -> Any:
            see(*args, **kwargs)
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, seen)

    return watched
