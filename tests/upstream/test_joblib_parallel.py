"""joblib's own tests of the behaviour that all of its backends have, run over ours.

Those that are about its processes, their pools and their memory maps are left out, each with its reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from manyfit.joblib_backend import ManyfitBackend
from tests.cluster._clusters import within
from tests.upstream._aim import exported_by
from tests.upstream._joblib import aimed

OURS = """\
from manyfit.joblib_backend import ManyfitBackend
PROCESS_BACKENDS = PARALLEL_BACKENDS = ALL_VALID_BACKENDS = ["manyfit"]
RETURN_GENERATOR_BACKENDS = {"manyfit": ManyfitBackend}


def get_default_backend_instance():"""

_upstream = aimed(
    "test_parallel",
    [
        ("def get_default_backend_instance():", OURS),
        ('@parametrize("backend", BACKENDS)', '@parametrize("backend", ["manyfit"])'),
        # Marked as one that fails, which it does not here.
        ('@pytest.mark.xfail(reason="https://github.com/joblib/loky/pull/255")\n', ""),
        ('@parametrize("parent_backend", BACKENDS)', '@parametrize("parent_backend", ["manyfit"])'),
    ],
)
LEFT_OUT = {
    "test_error_capture": "it looks at the pool of workers that a backend holds, which ours does not; its "
    "errors: tests/joblib_backend/test_faults.py::test_exceptions_of_tasks",
    "test_auto_memmap_on_arrays_from_generator": "of files that joblib's processes map into memory",
    "test_memmapping_leaks": "of these files",
    "test_initializer_context": "`initializer=` is of joblib's processes; Dask has plugins for it",
    "test_initializer_parallel": "the same",
    "test_parallel_with_interactively_defined_functions": "it starts scripts without a cluster",
    "test_parallel_with_unpicklable_functions_in_args": "the same",
    "test_no_blas_crash_or_freeze_with_subprocesses": "of processes that were forked",
    "test_main_thread_renamed_no_warning": "of warnings of joblib's own processes",
}


def _over_backends() -> dict[str, Any]:
    """Tests that are run for each backend of a list that is ours alone now."""
    found = {}
    for name, test in exported_by(_upstream).items():
        lists = [mark.args[1] for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
        if any("manyfit" in values for values in lists):
            found[name] = test
    return found


globals().update({name: test for name, test in _over_backends().items() if name not in LEFT_OUT})
pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("default")]


@pytest.fixture(autouse=True)
def _cluster() -> Iterator[None]:
    """One for each test: what runs goes on running, as in any thread."""
    with within(2, threads=2):
        yield


def test_the_ledger_is_of_tests_that_there_are():
    assert set(LEFT_OUT) <= set(_over_backends())
    assert len(_over_backends()) - len(LEFT_OUT) > 15


def test_the_tests_are_aimed_at_our_backend():
    assert _upstream.PARALLEL_BACKENDS == ["manyfit"]
    assert inspect.getmodule(_upstream.ManyfitBackend) is inspect.getmodule(ManyfitBackend)
