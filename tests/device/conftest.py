"""Fixtures of the tests of searches."""

import functools

import numpy as np
import pytest

import manyfit
from manyfit.arrays import place_of, to_device
from manyfit.families.smooth.solver._objective import LinearProblem
from manyfit.model_selection.planning.places import _data_location
from tests._search_fixtures import *  # noqa: F403  (fixtures are found by name)
from tests.behaviour.metrics._crossings import there


@pytest.fixture
def gpu(monkeypatch):
    """array-api-strict's second device in place of a GPU, to which data of the host are sent."""
    monkeypatch.setattr(_data_location, "default_gpu", lambda: place_of(there(np.ones(1))))
    with manyfit.config_context(device="cuda"):
        yield


@pytest.fixture
def steps(watch):
    """One item for each time that gradients of a batch are evaluated."""
    counted = []
    watch(LinearProblem, "gradient", lambda *args: counted.append(1))
    return counted


@pytest.fixture
def place(xp, device):
    """Brings an array to the device of a library."""
    return functools.partial(to_device, device=device, xp=xp)
