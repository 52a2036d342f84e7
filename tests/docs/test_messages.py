"""Messages that the page on troubleshooting explains are those of the code."""

from __future__ import annotations

import re

from tests.docs._pages import PAGES, ROOT

# Of Python and scikit-learn.
THEIRS = {
    "Invalid parameter … for estimator",
    "Found input variables with inconsistent numbers of samples",
    "Input X contains NaN",
    "ConvergenceWarning",
    "An attempt has been made to start a new process before the current process has finished its "
    "bootstrapping phase",
}


def messages(page: str) -> list[str]:
    """Messages of a page: code in bold, and in the first cell of the rows of a table."""
    bold = re.findall(r"\*\*`([^`]+)`\*\*", page)
    cells = re.findall(r"^\| (`[^|]*`) \|", page, re.M)
    in_cells = [code for cell in cells for code in cell.split("`")[1::2]]
    return [" ".join(one.split()) for one in (*bold, *in_cells)]


def source() -> str:
    """manyfit's source, with its texts of several lines joined."""
    lines = "\n".join(path.read_text() for path in (ROOT / "manyfit").rglob("*.py"))
    return re.sub(r"[\"']\n\s*f?[\"']", "", lines)


def unknown(asked: list[str], source: str) -> list[str]:
    """Messages with a part that is not in the source."""
    return [one for one in asked if not all(part.strip() in source for part in one.split("…"))]


def test_every_message_is_in_the_code():
    asked = messages(PAGES["docs/troubleshooting.md"].read_text())
    assert len(asked) > 40
    assert set(asked) >= THEIRS
    assert unknown([one for one in asked if one not in THEIRS], source()) == []


def test_what_is_not_in_the_code_is_found():
    page = "**`a … is\nred`** and `b`\n\n| `c d` | e |\n|---|---|\n| `f` | `g` |\n"
    assert messages(page) == ["a … is red", "c d", "f"]
    assert unknown(messages(page), "a\nis red\nf") == ["c d"]
