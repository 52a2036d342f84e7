"""The pages of the documentation, and their parts that tests check: examples, tables, names, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}

_EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.M | re.S)
# The last line of a text that shows only the first lines.
_REST = "...\n"
# Lines of a report with the seconds of a run.
_SECONDS = re.compile(r"^(seconds, [a-z ]*[a-z]) +\d+\.\d+$", re.M)


@dataclass(frozen=True)
class Example:
    """A python block, the line that it starts in, and the text block right behind it.

    A text that ends with the line ``...`` shows the first lines of what the block prints.
    """

    code: str
    line: int
    shown: str


def examples(page: str) -> list[Example]:
    """The examples of a page, in order."""
    return [
        Example(found["code"], page.count("\n", 0, found.start("code")) + 1, found["shown"] or "")
        for found in _EXAMPLE.finditer(page)
    ]


def run(page: str, name: str) -> None:
    """Run the examples of a page in order and in one namespace; AssertionError if one prints another text."""
    namespace: dict[str, Any] = {"__name__": name}
    for example in examples(page):
        printed = StringIO()
        # Line numbers in tracebacks are then those of the page.
        code = compile("\n" * (example.line - 1) + example.code, name, "exec")
        with redirect_stdout(printed):
            exec(code, namespace)
        got, shown = masked(printed.getvalue()), masked(example.shown)
        first = shown.removesuffix(_REST)
        true = got == shown if first == shown else got.startswith(first) and got != first
        assert true, f"{name}, line {example.line}, prints\n{got}"


def masked(text: str) -> str:
    """`text` without the seconds of a report."""
    return _SECONDS.sub(r"\1 -", text)


def table(page: str, name: str) -> list[dict[str, str]]:
    """The rows of the table between ``<!-- name -->`` and ``<!-- /name -->``, cells by heading."""
    lines = [line for line in marked(page, name).splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


def marked(page: str, name: str) -> str:
    """The text between ``<!-- name -->`` and ``<!-- /name -->``."""
    (found,) = re.findall(rf"^<!-- {name} -->\n(.*?)^<!-- /{name} -->$", page, re.M | re.S)
    return str(found)


def spans(text: str) -> list[str]:
    """The code spans of a text."""
    return re.findall(r"`([^`\n]+)`", text)


def links(page: str) -> Iterator[str]:
    """The targets of the links of a page, examples left out."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S)):
        yield str(target)


def anchors(page: str) -> set[str]:
    """The anchors of the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
