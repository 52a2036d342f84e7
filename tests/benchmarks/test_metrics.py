"""The benchmark of metrics runs, says what was asked, and fails where a score is another."""

import json

import numpy as np

from benchmarks import metrics as benchmark
from manyfit import metrics


def test_a_quick_run(tmp_path, capsys):
    out = tmp_path / "metrics.json"
    assert benchmark.main(["--quick", "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["rows"]
    assert {row["metric"] for row in rows} == set(benchmark.METRICS) >= set(benchmark.ASKED)
    assert all(row["apart"] <= 1e-12 and row["ours"] > 0 and row["floor"] > 0 for row in rows)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1 + len(rows)
    assert sum("met" in line.split("  ")[-1] for line in printed) == len(benchmark.ASKED)


def test_another_score_is_a_failure(monkeypatch):
    monkeypatch.setattr(benchmark, "METRICS", {"r2_score": "numbers"})
    monkeypatch.setattr(metrics.r2_score, "many", lambda y, P: np.zeros(len(P)))
    assert benchmark.main(["--quick"]) == 1


def test_scores_of_folds(capsys):
    assert benchmark.main(["--quick", "--folds"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(benchmark.SCORERS) * 3
