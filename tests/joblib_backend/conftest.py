"""Fixtures of the tests of the joblib backend."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from distributed import Client

import manyfit.joblib_backend  # noqa: F401 - registers the backend
from manyfit.cluster import local_cluster
from tests.cluster._clusters import forking, nothing_is_left, within
from tests.cluster._processes import wait_for
from tests.joblib_backend._calls import LARGE

_seeds = itertools.count()


@pytest.fixture(scope="module")
def _two_within() -> Iterator[Client]:
    with within(2) as client:
        yield client


@pytest.fixture
def two(_two_within: Client) -> Iterator[Client]:
    """Two workers of one thread within this process, and nothing left of the test on them."""
    with _two_within.as_current():
        yield _two_within
    nothing_is_left(_two_within)
    wait_for(lambda: not [t for t in threading.enumerate() if t.name == "manyfit-joblib"], "our threads")


@pytest.fixture
def one() -> Iterator[Client]:
    """One worker of one thread within this process; filters of warnings are set by one thread then."""
    with within(1) as client:
        yield client


@pytest.fixture
def data() -> np.ndarray:
    """Return an array of new content: equal content may still be on the cluster, and is then not sent."""
    return np.random.default_rng(next(_seeds)).normal(size=LARGE)


@pytest.fixture(scope="module")
def _processes() -> Iterator[Client]:
    with forking(), local_cluster(2, gpu=False) as client:
        yield client


@pytest.fixture
def processes(_processes: Client) -> Iterator[Client]:
    """Two processes of one thread: filters of warnings are a process's, and scikit-learn sets them."""
    with _processes.as_current():
        yield _processes
