"""joblib's own tests of its backend for Dask, aimed at ours: the same text, with our names in it.

What states a choice of that backend is left out, each with its reason, and what we do is tested elsewhere.
"""

from __future__ import annotations

from types import ModuleType

import pytest
from distributed.utils_test import cleanup, loop, loop_in_thread  # noqa: F401 - fixtures

from manyfit.joblib_backend import ManyfitBackend
from tests.upstream._aim import exported_by
from tests.upstream._joblib import aimed

# Our choice instead, and our own test of it.
LEFT_OUT = {
    "test_manual_scatter": "data are known by their content, so that there is no `scatter=` to name them: "
    "tests/joblib_backend/test_data.py::test_an_array_travels_once_wherever_it_is",
    "test_auto_scatter": "arrays of 10 kB travel with their tasks, from 32 kB on apart, and equal ones once: "
    "tests/joblib_backend/test_data.py::test_equal_content_is_one_part",
    "test_no_undesired_distributed_cache_hit": "it asks that nothing be scattered for a function with 8 MB "
    "in its closure, which travel apart here; that tasks do not share what they get: "
    "tests/joblib_backend/test_arguments.py::test_tasks_get_objects_of_their_own",
    "test_joblib_warning_inside_dask_daemonic_worker": "of loky and multiprocessing within tasks of Dask",
}
# Nested calls are made where their task is, as with joblib's other backends, unless the cluster is asked for.
ON_REQUEST = (
    "test_nested_parallelism_with_dask",
    "test_nested_backend_context_manager_implicit_n_jobs",
    "test_correct_nested_backend",
)


def _aimed(options: str = "") -> ModuleType:
    changes = (
        ('backend="dask"', f'backend="manyfit"{options}'),
        ('context("dask")', f'context("manyfit"{options})'),
        ("from .._dask import DaskDistributedBackend", "from manyfit.joblib_backend import ManyfitBackend"),
        ("DaskDistributedBackend", "ManyfitBackend"),
        # Our messages say what to do in other words.
        ('"create a dask client" in', '"there is no dask client: create one" in'),
        ('"ManyfitBackend has no worker after', '"The call of Parallel has no worker after'),
        ('"ManyfitBackend has no active worker"', '"has no active worker"'),
    )
    return aimed("test_dask", changes)


_nested = _aimed(', nested="cluster"')
_upstream = _aimed()
globals().update({name: value for name, value in exported_by(_upstream).items() if name not in LEFT_OUT})
globals().update({name: vars(_nested)[name] for name in ON_REQUEST})
pytestmark = pytest.mark.thorough


def test_the_ledger_is_of_tests_that_there_are():
    theirs = exported_by(_upstream)
    assert {*LEFT_OUT, *ON_REQUEST} <= set(theirs)
    assert len(theirs) > 15


def test_the_tests_are_aimed_at_our_backend():
    assert _upstream.ManyfitBackend is ManyfitBackend
    assert not hasattr(_upstream, "DaskDistributedBackend")
