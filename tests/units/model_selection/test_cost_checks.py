"""When sharing is worth its operations, as families expect them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from manyfit.estimators import Cost
from manyfit.folds import Unsupported
from manyfit.model_selection.planning._cost_checks import LEAST_GAIN, NOT_CHEAPER, require_cheaper


def _require(result, individual, sharing="auto"):
    cost = Cost(1.0, individual)
    family = SimpleNamespace(result=result, cost=lambda *_: cost)
    job = SimpleNamespace(sharing=sharing, options=SimpleNamespace(memory_limit=2**20))
    group = SimpleNamespace(family=family, prototype=None, settings=[])
    assert require_cheaper(group, None, job) is cost


def test_a_small_gain_is_enough_for_the_same_answers_and_too_small_for_others():
    _require("exact", 1.0)
    _require("converged", LEAST_GAIN)
    _require("converged", 1.5, sharing="optimum")  # which asks for the optimum itself
    with pytest.raises(Unsupported, match="1.5 times as fast, and is not done below 2 times"):
        _require("converged", 1.5)
    for result in ("exact", "converged"):
        with pytest.raises(Unsupported, match=NOT_CHEAPER):
            _require(result, 0.9, sharing="optimum")
