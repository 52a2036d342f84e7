"""Fixtures for the tests of searches."""

from __future__ import annotations

import pytest
from sklearn.linear_model import Lasso

from manyfit.arrays.transfer import _containers
from manyfit.arrays.transfer import _host_device as _transfer
from manyfit.estimators import family_of, register_family, unregister_family
from tests.behaviour.steps._prefixes import CALLS

__all__ = ["RANDOM_LASSO", "_count_from_zero", "_sharing_does_not_fail", "crossed", "registered"]

# A quick model that no family serves.
RANDOM_LASSO = Lasso(selection="random", random_state=0)


@pytest.fixture(autouse=True)
def _count_from_zero():
    CALLS.clear()


@pytest.fixture(autouse=True)
def _sharing_does_not_fail(caplog):
    """No fit fails where steps are shared that goes through in scikit-learn."""
    caplog.set_level("DEBUG", logger="manyfit.model_selection.sharing._fit_and_score")
    yield
    failed = [record.getMessage() for record in caplog.get_records("call")]
    failed = [message for message in failed if "failed where steps are shared" in message]
    assert not failed, failed


@pytest.fixture
def registered():
    """Register families for the time of a test."""
    taken = []

    def register(family):
        taken.append((family, [(cls, family_of(cls)) for cls in family.serves]))
        return register_family(family)

    yield register
    for family, before in reversed(taken):
        unregister_family(family)
        for _, old in before:
            if old is not None:
                register_family(old)


@pytest.fixture
def crossed(monkeypatch):
    """(where to, bytes) of each array that crosses."""
    found = []

    def watched(count):
        def counted(*, to_device=None, to_host=None, label=None):
            found.append(("device", to_device) if to_device is not None else ("host", to_host))
            count(to_device=to_device, to_host=to_host, label=label)

        return counted

    for module in (_transfer, _containers):
        monkeypatch.setattr(module, "count", watched(module.count))
    return found
