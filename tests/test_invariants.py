"""The list of invariants, and the option that prints it."""

from __future__ import annotations

from tests.conftest import pytest_cmdline_main
from tests.invariants import as_text, invariants

SAMPLE = """
import pytest

@pytest.mark.invariant("Birds lay eggs")
@pytest.mark.parametrize("bird", ["hen"])
def test_hens(bird): ...

@pytest.mark.slow
def test_other(): ...

@pytest.mark.invariant("Birds lay eggs")
def test_ducks(): ...
"""


def test_tests_are_grouped_by_the_invariant_that_they_hold(tmp_path):
    (tmp_path / "birds").mkdir()
    (tmp_path / "birds" / "test_a.py").write_text(SAMPLE)
    found = invariants(tmp_path / "birds")
    assert found == {"Birds lay eggs": ["birds/test_a.py::test_hens", "birds/test_a.py::test_ducks"]}
    text = "Birds lay eggs\n    birds/test_a.py::test_hens\n    birds/test_a.py::test_ducks\n\n1 invariants\n"
    assert as_text(found) == text


def test_the_option_prints_every_invariant_and_runs_nothing(request, monkeypatch, capsys):
    assert pytest_cmdline_main(request.config) is None  # not asked for
    monkeypatch.setattr(request.config.option, "invariants", True)
    assert pytest_cmdline_main(request.config) == 0  # which ends pytest there
    printed = capsys.readouterr().out
    assert printed == as_text(invariants())
    assert "Rooms import only from the rooms below them\n    tests/test_structure.py::" in printed


def test_each_invariant_is_one_sentence():
    sentences = list(invariants())
    assert len(sentences) > 70
    assert [text for text in sentences if not text[0].isalpha() or text.endswith(".") or len(text) > 90] == []
