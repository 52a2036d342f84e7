"""Tables and lists as HTML for notebooks, in the notebook's own colours on a light and on a dark page."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = (
    "<style>.manyfit-view{overflow-x:auto}.manyfit-view table{border-collapse:collapse;margin:.5em 0}"
    ".manyfit-view td,.manyfit-view th{border-bottom:1px solid rgba(128,128,128,.4);padding:.2em .8em;"
    "text-align:left!important;color:inherit}.manyfit-view p{margin:.4em 0}.manyfit-view summary"
    "{cursor:pointer}.manyfit-view img{max-width:100%;border-radius:4px}@media(max-width:600px){"
    ".manyfit-view td,.manyfit-view th{padding:.2em .3em;font-size:85%}"
    # On a phone a row is a list of its cells, each behind the name of its column.
    ".manyfit-view .named th,.manyfit-view .named td:empty{display:none}"
    ".manyfit-view .named tr{display:block;border-bottom:1px solid rgba(128,128,128,.4);padding:.3em 0}"
    ".manyfit-view .named td{display:block;border:0;padding:.1em 0}"
    ".manyfit-view .named td::before{content:attr(data-name) ': ';opacity:.7}}</style>"
)
# What says nothing if all rows of a column have it.
_NOTHING = {"groups": ("1",)}


def view(verdict: str, *parts: str) -> str:
    """A view that begins with its verdict; `parts` are HTML."""
    return f'{_STYLE}<div class="manyfit-view"><p><b>{escape(verdict)}</b></p>{"".join(parts)}</div>'


def table(rows: Iterable[Sequence[Any]], names: Sequence[str] = ()) -> str:
    """A table of texts, without the columns that are empty or 0, or of one group, in all rows."""
    rows = [[str(cell) for cell in row] for row in rows]
    n_columns = len(rows[0]) if rows else 0
    nothing = [("", "0", *_NOTHING.get(name, ())) for name in names] or [("", "0")] * n_columns
    shown = [j for j in range(n_columns) if any(row[j] not in nothing[j] for row in rows)]
    if not names:
        body = ("".join(f"<td>{escape(row[j])}</td>" for j in shown) for row in rows)
        return f"<table>{''.join(f'<tr>{cells}</tr>' for cells in body)}</table>"
    head = "".join(f"<th>{escape(names[j])}</th>" for j in shown)
    body = (
        "".join(f'<td data-name="{escape(names[j])}">{escape(row[j])}</td>' for j in shown) for row in rows
    )
    return f'<table class="named">{"".join(f"<tr>{cells}</tr>" for cells in (head, *body))}</table>'


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
