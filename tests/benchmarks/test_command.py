"""The command ``python -m benchmarks``."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import __main__ as command
from benchmarks.__main__ import _chosen, main
from benchmarks._benchmark import all_benchmarks


def test_lists_every_benchmark_with_a_line(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(all_benchmarks())
    assert len(lines) > 25
    assert all(len(line.split()) > 3 for line in lines)


def test_benchmarks_are_chosen_by_name_or_by_its_first_words():
    known = all_benchmarks()
    for words in ("cluster", "cluster-shared", "joblib", "gpu"):
        named = [name for name in known if name.startswith(f"{words}-")]
        assert [one.name for one in _chosen(words, known)] == named != []
    assert [one.name for one in _chosen("logistic", known)] == ["logistic"]
    assert [one.name for one in _chosen("all", known)] == list(known)
    assert _chosen("clus", known) == []


def test_runs_one_and_writes_it(capsys, monkeypatch, tmp_path):
    taken = all_benchmarks()["overhead"]
    contenders = tuple(c for c in taken.contenders if c.name.endswith("n_jobs=None"))  # the fastest to start
    monkeypatch.setattr(
        command, "all_benchmarks", lambda: {"overhead": replace(taken, contenders=contenders)}
    )
    out = tmp_path / "one.json"
    assert main(["overhead", "--quick", "--no-memory", "--repeat", "1", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "overhead: DummyClassifier" in printed.out
    assert "warm-up: manyfit" in printed.err  # long runs say where they are
    (result,) = json.loads(out.read_text())["results"]
    assert result["name"] == "overhead"
    assert result["rounds"] == 1
    assert result["quick"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rigde"], "no benchmark named 'rigde'; there are"),
        (["overhead", "--repeat", "0"], "at least 1, got 0"),
    ],
)
def test_refuses(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err
