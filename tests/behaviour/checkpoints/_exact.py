"""The grid of searches with checkpoints, and that their numbers are equal to the last bit."""

from __future__ import annotations

from tests._same_results import assert_same_results

GRID = {"a": [0.5, 1.0, 1.5, 2.0]}


def exactly(ours, theirs):
    """The same numbers to the last bit, but for times."""
    assert_same_results(ours, theirs, rtol=0, atol=0)
    for key, value in theirs.cv_results_.items():
        if not key.endswith("_time") and key != "params":
            assert [repr(one) for one in ours.cv_results_[key]] == [repr(one) for one in value]
