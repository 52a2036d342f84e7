"""What writes measured figures into the pages of the documentation."""

from __future__ import annotations

import json

import pytest

from benchmarks import __main__ as command
from benchmarks._benchmark import Benchmark, all_benchmarks
from benchmarks._full_results import Results
from benchmarks._pages import ROOT, TABLES, as_markdown, replace_table, write_pages
from benchmarks._speed_tables import searches

PAGE = "# Title\n\n<!-- a -->\n| old |\n<!-- /a -->\n\nText.\n<!-- b -->\n<!-- /b -->\n"
ROWS = [{"Who": "manyfit", "Time": "1 s"}, {"Who": "", "Time": "2 s"}]
TABLE = "| Who | Time |\n| --- | --- |\n| manyfit | 1 s |\n| | 2 s |\n"


@pytest.fixture
def kept() -> Results:
    """The results in the repository."""
    rounds = {name: one.repeat for name, one in all_benchmarks().items() if isinstance(one, Benchmark)}
    return Results(ROOT / "benchmarks" / "results", rounds)


def test_a_table_is_written_between_its_markers_and_nothing_else_changes():
    assert as_markdown(ROWS) == TABLE
    assert replace_table(PAGE, "a", ROWS) == PAGE.replace("| old |\n", TABLE)
    assert replace_table(PAGE, "b", ROWS) == PAGE.replace("<!-- b -->\n", f"<!-- b -->\n{TABLE}")


def test_a_page_without_the_markers_is_an_error():
    with pytest.raises(ValueError, match="no place for the table 'c'"):
        replace_table(PAGE, "c", ROWS)


def test_every_table_is_written_into_its_page(kept, tmp_path):
    for page in {page for page, _ in TABLES.values()}:
        path = tmp_path / page
        path.parent.mkdir(exist_ok=True)
        names = [name for name, (other, _) in TABLES.items() if other == page]
        path.write_text("".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in names))
    changed = write_pages(kept, tmp_path)
    assert set(changed) == {page for page, _ in TABLES.values()}
    assert write_pages(kept, tmp_path) == []
    for page, _ in TABLES.values():
        text = (tmp_path / page).read_text()
        assert "| None |" not in text
        assert text.count("\n| --- ") == sum(other == page for other, _ in TABLES.values())


def _result(**changes):
    row = {
        "name": "manyfit n_jobs=None",
        "kind": "ours",
        "median": 0.0125,
        "memory": None,
        "memory_in_X": None,
    }
    row |= {"times_best_sklearn": 32.81, "cost_in_fits": 1.99, "failure": None}
    row |= {"mean_difference": 2e-16, "split_difference": 4.4e-16}
    other = {**row, "name": "scikit-learn n_jobs=-1", "kind": "scikit-learn", "median": 0.41}
    return {"name": "a", "quick": False, "rounds": 3, "rows": [row, other]} | changes


def test_what_a_row_of_ratios_says(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks._speed_tables.WITH_RATIOS", ("a",))
    (tmp_path / "a.json").write_text(json.dumps({"results": [_result()]}))
    (row,) = searches(Results(tmp_path, {"a": 5}))
    assert list(row.values()) == [
        "`python -m benchmarks a --repeat 3 --no-memory`", "410 ms", "12.5 ms", "32.8", "1.99", "-", "4e-16"
    ]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps({"results": [_result(quick=True)]}))
    with pytest.raises(ValueError, match="a was run with --quick"):
        searches(Results(tmp_path, {"a": 5}))


def test_the_command_says_what_changed(monkeypatch, capsys):
    monkeypatch.setattr(command, "write_pages", lambda results: ["README.md"])
    assert command.main(["--write-docs"]) == 0
    monkeypatch.setattr(command, "write_pages", lambda results: [])
    assert command.main(["--write-docs"]) == 0
    assert capsys.readouterr().out == "README.md was changed\nThe pages have these results already.\n"
