"""Fixtures of the tests of drop-in estimators on devices."""

from __future__ import annotations

import pytest

from manyfit.estimators.backends import _cuml as _with_cuml
from manyfit.estimators.backends import _native_registry as _own


@pytest.fixture
def scikit_learn_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of our own are switched on where they are tested; cuML's, where it is, have tests of their own."""
    monkeypatch.setattr(_own, "_fitters", {})
    monkeypatch.setattr(_with_cuml, "LIBRARIES", ())
