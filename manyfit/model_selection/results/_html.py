"""Tables and lists as HTML for notebooks, in the notebook's own colours on a light and on a dark page."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = (
    "<style>.manyfit-view{overflow-x:auto}.manyfit-view table{border-collapse:collapse;margin:.5em 0}"
    ".manyfit-view td,.manyfit-view th{border-bottom:1px solid rgba(128,128,128,.4);padding:.2em .8em;"
    "text-align:left!important;color:inherit}.manyfit-view p{margin:.4em 0}.manyfit-view summary"
    "{cursor:pointer}.manyfit-view img{max-width:100%;border-radius:4px}@media(max-width:600px){"
    ".manyfit-view td,.manyfit-view th{padding:.2em .3em;font-size:85%}}</style>"
)


def view(verdict: str, *parts: str) -> str:
    """A view that begins with its verdict; `parts` are HTML."""
    return f'{_STYLE}<div class="manyfit-view"><p><b>{escape(verdict)}</b></p>{"".join(parts)}</div>'


def table(rows: Iterable[Sequence[Any]], names: Sequence[str] = ()) -> str:
    """A table of texts, without the columns that are empty or 0 in all rows."""
    rows = [[str(cell) for cell in row] for row in rows]
    shown = [j for j in range(len(rows[0]) if rows else 0) if any(row[j] not in ("", "0") for row in rows)]
    head = "<tr>" + "".join(f"<th>{escape(names[j])}</th>" for j in shown) + "</tr>" if names else ""
    body = ("<tr>" + "".join(f"<td>{escape(row[j])}</td>" for j in shown) + "</tr>" for row in rows)
    return f"<table>{head}{''.join(body)}</table>"


def bullets(title: str, lines: Sequence[str]) -> str:
    """A list below its title; nothing if it has no lines."""
    if not lines:
        return ""
    return f"<p>{escape(title)}:</p><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def paragraph(line: str) -> str:
    return f"<p>{escape(line)}</p>"


def picture(title: str, png: str) -> str:
    """A picture, given in base64, that a click on its title shows."""
    image = f'<img alt="{escape(title)}" src="data:image/png;base64,{png}">'
    return f'<details class="manyfit-view"><summary>{escape(title)}</summary>{image}</details>'
