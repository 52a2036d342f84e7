"""The result of a benchmark: a row for each contender, and the facts that all have in common."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks._floor import Floor
from benchmarks._verdict import Verdict


@dataclass(frozen=True)
class Memory:
    """Peak bytes beyond those that were resident when the data were ready.

    ``resident`` is the high-water mark of the process, ``workers`` the sum of those of its worker processes
    (shared pages count in each), ``traced`` the peak by tracemalloc in a second run.
    """

    resident: int
    workers: int
    traced: int

    @property
    def total(self) -> int:
        """Resident bytes of the process and its workers."""
        return self.resident + self.workers


@dataclass
class Row:
    """The result of one contender; a failure stands beside all that was measured before it.

    ``fit_sums`` are the total seconds of its fits and scores by its own report, for each run. ``given_up``
    is the number of seconds after which it was stopped.
    """

    name: str
    kind: str
    note: str = ""
    seconds: list[float] = field(default_factory=list)
    fit_sums: list[float] = field(default_factory=list)
    failure: str | None = None
    given_up: float | None = None
    mean_difference: float | None = None
    split_difference: float | None = None
    memory: Memory | None = None
    memory_failure: str | None = None
    fits: Mapping[str, int] | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        """Median time in seconds; None after a failure."""
        return statistics.median(self.seconds) if self.seconds and self.failure is None else None


@dataclass
class Result:
    """Everything that one benchmark measured."""

    name: str
    summary: str
    quick: bool
    rounds: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    settings: int
    splits: int
    blas_threads: int | None
    rows: list[Row]
    reference: str | None = None
    cores: int | None = None
    most_seconds: float = 600.0
    dearest: str | None = None
    fit_seconds: list[float] = field(default_factory=list)
    floor: Floor | None = None
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def one_fit(self) -> float | None:
        """Median time of one fit and score of the most expensive setting on one split."""
        return statistics.median(self.fit_seconds) if self.fit_seconds else None

    @property
    def ideal(self) -> float | None:
        """Seconds that the cores would need for nothing but the fits and scores of the reference."""
        row = next((row for row in self.rows if row.name == self.reference), None)
        return statistics.median(row.fit_sums) / self.cores if row and row.fit_sums and self.cores else None

    def best(self, *kinds: str) -> Row | None:
        """Return the fastest row of these kinds; None if all failed."""
        rows = [row for row in self.rows if row.kind in kinds and row.median is not None]
        return min(rows, key=lambda row: row.median or 0.0, default=None)

    def row(self, name: str) -> Row | None:
        """Return the row of one contender; None if it did not take part or failed."""
        return next((r for r in self.rows if r.name == name and r.median is not None), None)

    def given_up(self, name: str) -> float | None:
        """Seconds after which one contender was stopped; None if it was not."""
        return next((row.given_up for row in self.rows if row.name == name), None)
