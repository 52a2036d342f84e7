"""What is asked of us: each bar is a function of a result that returns a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks._measure import Result


@dataclass(frozen=True)
class Verdict:
    """What was asked, what was got, and whether that is enough; None where it was not measured."""

    asked: str
    got: str
    met: bool | None


Bar = Callable[["Result"], Verdict]


def _at_least(asked: str, got: float | None, least: float, unit: str) -> Verdict:
    if got is None:
        return Verdict(asked, "not measured", None)
    return Verdict(asked, f"{got:.3g} {unit}", got >= least)


def _at_most(asked: str, got: float | None, most: float, unit: str) -> Verdict:
    if got is None:
        return Verdict(asked, "not measured", None)
    return Verdict(asked, f"{got:.3g} {unit}", got <= most)


def _times_faster(result: Result, other: float | None) -> float | None:
    ours = result.best("ours")
    return other / ours.median if other and ours is not None and ours.median else None


def times_faster(least: float) -> Bar:
    """At least so many times faster than the better of scikit-learn's two searches."""

    def bar(result: Result) -> Verdict:
        peer = result.best("scikit-learn")
        got = _times_faster(result, peer.median if peer else None)
        return _at_least(f"at least {least:g} times scikit-learn", got, least, "times")

    return bar


def not_slower_than_best(*kinds: str) -> Bar:
    """Not slower than the fastest contender of these kinds."""

    def bar(result: Result) -> Verdict:
        peer = result.best(*kinds)
        got = _times_faster(result, peer.median if peer else None)
        asked = f"not slower than {peer.name if peer else 'the best of the others'}"
        return _at_least(asked, got, 1.0, "times as fast")

    return bar


def not_slower_than(name: str) -> Bar:
    """Not slower than one contender."""

    def bar(result: Result) -> Verdict:
        row = result.row(name)
        got = _times_faster(result, row.median if row else None)
        return _at_least(f"not slower than {name}", got, 1.0, "times as fast")

    return bar


def cost_in_fits(most: float) -> Bar:
    """No dearer than so many fits of the dearest setting on one split."""

    def bar(result: Result) -> Verdict:
        ours, one = result.best("ours"), result.one_fit
        got = ours.median / one if ours is not None and ours.median and one else None
        return _at_most(f"at most {most:g} fit{'s' * (most != 1)}", got, most, "fits")

    return bar


def peak_memory(most: float) -> Bar:
    """No more memory beyond X than so many times X, counting worker processes."""

    def bar(result: Result) -> Verdict:
        ours = result.best("ours")
        got = ours.memory.total / result.bytes if ours is not None and ours.memory else None
        return _at_most(f"at most {most:g} times X beyond X", got, most, "times X")

    return bar


def same_scores(most: float) -> Bar:
    """No score further from scikit-learn's than this, over means and splits and every one of ours."""

    def bar(result: Result) -> Verdict:
        gaps = [
            gap
            for row in result.rows
            if row.kind == "ours"
            for gap in (row.mean_difference, row.split_difference)
            if gap is not None
        ]
        return _at_most(f"scores within {most:g} of scikit-learn's", max(gaps, default=None), most, "apart")

    return bar


def fitted_once_per_split(*steps: str, distinct: int) -> Bar:
    """The transformers of these classes fitted at most once per distinct setting of theirs and split.

    Counted from outside where all fits are made in this process; for workers our own report has to do.
    """

    def bar(result: Result) -> Verdict:
        most = distinct * result.splits
        ours = [row for row in result.rows if row.kind == "ours" and row.failure is None]
        counted = [sum(row.fits[step] for step in steps) for row in ours if row.fits is not None]
        told = [row.report["transformer_fits"] for row in ours if "transformer_fits" in row.report]
        got = max([*counted, *told], default=None)
        return _at_most(f"at most {most} transformer fits", got, most, "fits")

    return bar
