"""A benchmark that is no race of contenders, with rows and columns of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tqdm import tqdm

from benchmarks._verdict import Verdict

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Column:
    """A value of each row, its heading and its unit."""

    key: str
    heading: str
    unit: Literal["", "s", "bytes", "number", "gap"] = ""


@dataclass(frozen=True)
class Findings:
    """The results of a study.

    All ``rows`` have the same keys. ``found`` has conclusions for readers of the JSON.
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
    """A named measurement.

    ``measure`` is called with ``quick`` and with a function that shows progress. ``why_not`` gives the
    reason if it cannot run on this machine.
    """

    name: str
    summary: str
    measure: Callable[[bool, Tell], Findings]
    why_not: Callable[[], str | None] = lambda: None

    def run(self, *, quick: bool = False, progress: bool = False) -> Findings:
        """Run the measurement."""
        with tqdm(desc=self.name, disable=not progress, leave=False, bar_format="{desc}: {postfix}") as bar:
            found = self.measure(quick, lambda where: bar.set_postfix_str(where))
        return replace(found, name=self.name, summary=self.summary, quick=quick)
