"""What the tests of the harness share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Let no small product wait for a second thread that a busy machine is slow to give."""
    with threadpool_limits(1):
        yield
