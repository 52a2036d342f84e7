"""Results as a table for people and as JSON for later."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from joblib import cpu_count

from benchmarks._machine import machine, versions
from benchmarks._result import Result, Row
from benchmarks._study import Findings

_QUICK = "   QUICK: small data; the requirements are for the full size"
_HEAD = ("contender", "median", "min - max", "times", "fits", "peak", "x X", "traced", "mean", "per split")


def table(result: Result | Findings) -> str:
    """Return the result as text: a row for each contender, then costs, floor and bars."""
    if isinstance(result, Findings):
        return _of_a_study(result)
    rows = [_HEAD, *(_cells(row, result) for row in result.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [_title(result), ""]
    for number, (cells, row) in enumerate(zip(rows, [None, *result.rows], strict=True)):
        text = [cells[0].ljust(widths[0])]
        if row is not None and row.failure is not None:
            text.append(row.failure)
        else:
            text += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        lines.append("  ".join(text).rstrip())
        if number == 0:
            lines.append("-" * (sum(widths) + 2 * len(widths) - 2))
    return "\n".join([*lines, "", *_legend(result), *_notes(result), *_floor(result), *_bars(result)])


def _of_a_study(found: Findings) -> str:
    heads = tuple(column.heading for column in found.columns)
    cells = [tuple(_cell(row[c.key], c.unit) for c in found.columns) for row in found.rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [f"{found.name}: {found.summary}{_QUICK if found.quick else ''}", ""]
    for number, row in enumerate([heads, *cells]):
        padded = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *padded[1:]]).rstrip())
        if number == 0:
            lines.append("-" * (sum(widths) + 2 * len(widths) - 2))
    return "\n".join([*lines, "", *found.notes, *_bars(found)])


def write_json(results: Sequence[Result | Findings], path: Path) -> None:
    """Write everything that was measured, with machine and versions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_dict(results), indent=1, allow_nan=False) + "\n")


def as_dict(results: Sequence[Result | Findings]) -> dict[str, Any]:
    """Return everything that was measured in types of JSON; infinity and NaN become text."""
    return {
        "machine": machine(),
        "versions": versions(),
        "results": [_plain(_with_derived(result)) for result in results],
    }


def _with_derived(result: Result | Findings) -> dict[str, Any]:
    found = asdict(result)
    if isinstance(result, Findings):
        return found
    for values, row in zip(found["rows"], result.rows, strict=True):
        values["median"] = row.median
        values["times_best_sklearn"] = _times(row, result)
        values["cost_in_fits"] = _cost(row, result)
        values["memory_in_X"] = row.memory.total / result.bytes if row.memory else None
    found["one_fit"], found["ideal"] = result.one_fit, result.ideal
    if result.floor is not None:
        found["floor"]["seconds"] = result.floor.seconds
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _times(row: Row, result: Result) -> float | None:
    peer = result.best("scikit-learn")
    return peer.median / row.median if row.median and peer is not None and peer.median else None


def _cost(row: Row, result: Result) -> float | None:
    return row.median / result.one_fit if row.median and result.one_fit else None


def _title(result: Result) -> str:
    size = " x ".join(f"{n:,}" for n in result.shape)
    return (
        f"{result.name}: {result.summary}{_QUICK if result.quick else ''}\n"
        f"X {size} {result.dtype}, {as_bytes(result.bytes)}; "
        f"{result.settings} settings x {result.splits} splits = {result.settings * result.splits} fits; "
        f"{result.rounds} interleaved rounds, "
        f"{cpu_count()} cores, {result.blas_threads} BLAS threads"
    )


def _cells(row: Row, result: Result) -> tuple[str, ...]:
    return (
        row.name,
        as_seconds(row.median),
        f"{as_seconds(min(row.seconds))} - {as_seconds(max(row.seconds))}" if row.seconds else "",
        rounded(_times(row, result)),
        rounded(_cost(row, result)),
        as_bytes(row.memory.total) if row.memory else "-",
        rounded(row.memory.total / result.bytes if row.memory else None),
        rounded(row.memory.traced / result.bytes if row.memory else None),
        _gap(row.mean_difference),
        _gap(row.split_difference),
    )


def _legend(result: Result) -> list[str]:
    return [
        "times: against the faster scikit-learn search; fits: cost in fits of the most expensive setting;",
        "peak: highest resident memory beyond X, workers included; x X: the same as a multiple of X;",
        "traced: the multiple by tracemalloc, without workers;",
        f"mean, per split: largest difference from the test scores of {result.reference},",
        "and of manyfit from scikit-learn's with the same n_jobs",
    ]


def _notes(result: Result) -> list[str]:
    lines = [""]
    if result.one_fit is not None:
        lines.append(f"one fit and score: {as_seconds(result.one_fit)} at {result.dearest}")
    for row in result.rows:
        if row.failure is not None:
            continue
        said = [row.note] if row.note else []
        if result.cores is not None and row.fit_sums and row.seconds:
            said.append(_share(row, result.cores))
        if row.fits is not None:
            said.append("fits counted: " + ", ".join(f"{name} {n}" for name, n in row.fits.items()))
        if row.report:
            said.append(_our_report(row))
        if row.warnings:
            said.append(f"{len(row.warnings)} kinds of warning, the first {row.warnings[0]}")
        if row.memory_failure is not None:
            said.append(f"memory not measured: {row.memory_failure}")
        if said:
            lines.append(f"{row.name}: {'; '.join(said)}")
    return lines


def _our_report(row: Row) -> str:
    report = row.report
    return (
        f"its report: {report['fits_requested']} fits requested, {report['fits_done']} made, "
        f"{report['transformer_fits']} of transformers, {report['passes']:.3g} passes over X"
    )


def _share(row: Row, cores: int) -> str:
    inside = median(row.fit_sums)
    share = inside / cores / median(row.seconds)
    took = f"fits and scores took {as_seconds(inside)} by its own report"
    return f"{took}, {share:.3g} of the time of {cores} cores"


def _floor(result: Result) -> list[str]:
    floor, ours = result.floor, result.best("ours")
    if floor is None:
        return []
    parts = [
        f"{as_bytes(floor.bytes)} at {floor.bytes_per_second / 1e9:.1f} GB/s",
        f"{floor.flops / 1e9:.3g} Gflop at {floor.flops_per_second / 1e9:.0f} Gflop/s",
    ]
    if floor.work_seconds:
        parts.append(f"work on one core {as_seconds(floor.work_seconds)}")
    if floor.steps_seconds is not None:
        parts.append(f"every distinct step once {as_seconds(floor.steps_seconds)} over {floor.cores} cores")
    line = f"floor {as_seconds(floor.seconds)}, the largest of: {'; '.join(parts)}"
    if ours is not None and ours.median:
        line += f". {ours.name} is at {ours.median / floor.seconds:.3g} times the floor"
    if result.ideal is None:
        return ["", line]
    return [
        "",
        line,
        f"ideal {as_seconds(result.ideal)}: the fits of {result.reference} over {result.cores} cores",
    ]


def _bars(result: Result | Findings) -> list[str]:
    words = {True: "met", False: "NOT MET", None: "not judged"}
    return ["", *(f"required: {v.asked}; measured: {v.got}; {words[v.met]}" for v in result.verdicts)]


def as_seconds(value: float | None) -> str:
    """Three digits of a time."""
    if value is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def as_bytes(value: float) -> str:
    """Three digits of a size."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} B"


def rounded(value: float | None) -> str:
    """Three digits of a number."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def as_difference(value: float) -> str:
    """Return a difference of scores as text."""
    return f"{value:.0e}" if value else "0"


def _gap(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}" if value else "0"


def _cell(value: Any, unit: str) -> str:
    return "-" if value is None else _UNITS[unit](value)


_UNITS: dict[str, Callable[[Any], str]] = {
    "": str,
    "s": as_seconds,
    "bytes": as_bytes,
    "number": rounded,
    "gap": _gap,
}
