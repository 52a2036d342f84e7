"""Fixtures for the tests of all rooms."""

from __future__ import annotations

import functools
import gc
import importlib
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from inspect import isfunction
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


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> list[pytest.Item] | None:
    """Make no test that is thorough where none of these run: thousands would be made and left out."""
    if _covering.MAKES_THOROUGH_CASES or not (isinstance(collector, pytest.Module) and isfunction(obj)):
        return None
    marks = getattr(collector.obj, "pytestmark", [])
    marks = [*(marks if isinstance(marks, list) else [marks]), *getattr(obj, "pytestmark", [])]
    return [] if any(mark.name == "thorough" for mark in marks) else None


@pytest.hookimpl(trylast=True)  # when the cases are known
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Of tests with the mark ``cases(n)``, mark the cases that are not chosen, or do not make them."""
    cases = metafunc._calls  # there is no public way to them
    candidates = [case for case in cases if not any(mark.name == "thorough" for mark in case.marks)]
    mark = metafunc.definition.get_closest_marker("cases")
    chosen = candidates
    if mark:
        chosen = _covering.few(candidates, mark.args[0], lambda case: case.indices.items())
    if chosen and not _covering.MAKES_THOROUGH_CASES:
        kept = {id(case) for case in chosen}
        cases[:] = [case for case in cases if id(case) in kept]
        return
    for case in candidates:
        if not any(case is one for one in chosen):
            case.marks.append(pytest.mark.thorough.mark)


@pytest.hookimpl(trylast=True)  # after -m, -k and --deselect
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_out(config, items)


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
def _as_if_alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run each test as if no other had run before: one fixture, since each takes a tenth of a millisecond."""
    module, seeded = request.module, getattr(request.module, "rng", None)
    _compute_without_a_lost_client()
    _host_fallback._warned.clear()  # so that a warning that another test has seen is shown again
    if not isinstance(seeded, np.random.Generator):
        yield
        return
    # With another seed than the module's own, so that nothing that a test draws is drawn for it already.
    module.rng = np.random.default_rng(1)
    yield
    module.rng = seeded


def _compute_without_a_lost_client() -> None:
    """Dask computes by itself again after a test whose client lost its scheduler before it was closed."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and dask.config.get("scheduler", None) == "dask.distributed":
        try:
            distributed.default_client()
        except ValueError:
            dask.config.set(scheduler=None)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Hand the arguments of each call of a function to another one first: ``watch(owner, name, see)``."""

    def watched(owner: Any, name: str, see: Any) -> None:
        function = getattr(owner, name)

        @functools.wraps(function)
        def seen(*args: Any, **kwargs: Any) -> Any:
            see(*args, **kwargs)
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, seen)

    return watched
