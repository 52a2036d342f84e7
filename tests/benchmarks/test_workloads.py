"""The workloads of the examples, at a size that takes moments."""

from __future__ import annotations

import dask

from examples import workloads


def test_both_workloads(capsys):
    with dask.config.set(scheduler="synchronous"):
        found = workloads.main(["4000"])
    assert abs(found["mean"] - 1.0) < 0.01
    assert found["fits"] == 0 and found["passes"] == 1 and found["score"] > 0.9
    assert "passes: 1" in capsys.readouterr().out
