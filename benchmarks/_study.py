"""A benchmark that is no race of contenders: it measures rows of its own, with columns of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tqdm import tqdm

from benchmarks._verdict import Verdict

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Column:
    """What of each row is shown, under which heading, and how."""

    key: str
    heading: str
    unit: Literal["", "s", "bytes", "number", "gap"] = ""


@dataclass(frozen=True)
class Findings:
    """What a study measured.

    ``rows`` have the same keys each; ``found`` is what follows from them, kept for those who read the JSON.
    """

    rows: list[dict[str, Any]]
    columns: Sequence[Column]
    found: dict[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    verdicts: Sequence[Verdict] = ()
    name: str = ""
    summary: str = ""
    quick: bool = False


@dataclass(frozen=True)
class Study:
    """A name, and what measures: it is called with ``quick`` and with a function that tells where it is.

    ``why_not`` says why it cannot be measured on this machine, if so.
    """

    name: str
    summary: str
    measure: Callable[[bool, Tell], Findings]
    why_not: Callable[[], str | None] = lambda: None

    def run(self, *, quick: bool = False, progress: bool = False) -> Findings:
        """Measure."""
        with tqdm(desc=self.name, disable=not progress, leave=False, bar_format="{desc}: {postfix}") as bar:
            found = self.measure(quick, lambda where: bar.set_postfix_str(where))
        return replace(found, name=self.name, summary=self.summary, quick=quick)
