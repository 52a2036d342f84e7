"""What is asked of us: each bar is a function of a result that returns a verdict."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks._result import Result, Row
from benchmarks._verdict import Verdict, at_least, at_most

Bar = Callable[[Result], Verdict]


def _times_faster(result: Result, other: float | None) -> float | None:
    ours = result.best("ours")
    return other / ours.median if other and ours is not None and ours.median else None


def times_faster(least: float) -> Bar:
    """At least so many times faster than the better of scikit-learn's two searches."""

    def bar(result: Result) -> Verdict:
        peer = result.best("scikit-learn")
        got = _times_faster(result, peer.median if peer else None)
        return at_least(f"at least {least:g} times scikit-learn", got, least, "times")

    return bar


def not_slower_than_best(*kinds: str) -> Bar:
    """Not slower than the fastest contender of these kinds."""

    def bar(result: Result) -> Verdict:
        peer = result.best(*kinds)
        got = _times_faster(result, peer.median if peer else None)
        asked = f"not slower than {peer.name if peer else 'the best of the others'}"
        return at_least(asked, got, 1.0, "times as fast")

    return bar


def not_slower_than(name: str) -> Bar:
    """Not slower than one contender."""

    def bar(result: Result) -> Verdict:
        row, given_up = result.row(name), result.given_up(name)
        got = _times_faster(result, row.median if row else given_up)
        unit = "times as fast" if given_up is None else "times as fast or more"
        return at_least(f"not slower than {name}", got, 1.0, unit)

    return bar


def cost_in_fits(most: float) -> Bar:
    """No dearer than so many fits of the dearest setting on one split."""

    def bar(result: Result) -> Verdict:
        ours, one = result.best("ours"), result.one_fit
        got = ours.median / one if ours is not None and ours.median and one else None
        return at_most(f"at most {most:g} fit{'s' * (most != 1)}", got, most, "fits")

    return bar


def near_ideal(least: float) -> Bar:
    """At least this part of the speed of cores that share the fits of the reference without any loss."""

    def bar(result: Result) -> Verdict:
        ours, ideal = result.best("ours"), result.ideal
        got = ideal / ours.median if ours is not None and ours.median and ideal else None
        return at_least(f"at least {least:g} of the ideal of {result.cores} cores", got, least, "of it")

    return bar


def over_ideal(most: float) -> Bar:
    """At most so many seconds over the time of cores that share the fits of the reference without loss."""

    def bar(result: Result) -> Verdict:
        ours, ideal = result.best("ours"), result.ideal
        got = ours.median - ideal if ours is not None and ours.median and ideal else None
        return at_most(f"at most {most:g} s over the ideal of {result.cores} cores", got, most, "s over it")

    return bar


def _median_of(call: Callable[[float, float], float], one: Row | None, peer: Row | None) -> float | None:
    """Of each run and the other contender's run beside it, since a machine that is slow is so for both."""
    if one is None or peer is None:
        return None
    n = min(len(one.seconds), len(peer.seconds))
    return statistics.median(map(call, one.seconds[-n:], peer.seconds[-n:]))


def over(most: float, ours: str, other: str) -> Bar:
    """One contender at most so many seconds slower than another, at the median of the rounds."""

    def bar(result: Result) -> Verdict:
        got = _median_of(lambda one, peer: one - peer, result.row(ours), result.row(other))
        return at_most(f"{ours}: at most {most:g} s over {other}", got, most, "s over it")

    return bar


def share_over(most: float, ours: str, other: str) -> Bar:
    """One contender slower than another by at most this part of its time, at the median of the rounds."""

    def bar(result: Result) -> Verdict:
        got = _median_of(lambda one, peer: one / peer - 1.0, result.row(ours), result.row(other))
        return at_most(f"{ours}: at most {most:.0%} over {other}", got, most, "of it")

    return bar


def peak_memory(most: float) -> Bar:
    """No more memory beyond X than so many times X, counting worker processes."""

    def bar(result: Result) -> Verdict:
        ours = result.best("ours")
        got = ours.memory.total / result.bytes if ours is not None and ours.memory else None
        return at_most(f"at most {most:g} times X beyond X", got, most, "times X")

    return bar


def same_scores(most: float) -> Bar:
    """No score further from the reference's than this, over means and splits and every one of ours."""

    def bar(result: Result) -> Verdict:
        gaps = [
            gap
            for row in result.rows
            if row.kind == "ours"
            for gap in (row.mean_difference, row.split_difference)
            if gap is not None
        ]
        whose = "scikit-learn" if result.reference is None else result.reference.partition(" n_jobs")[0]
        return at_most(f"scores within {most:g} of {whose}'s", max(gaps, default=None), most, "apart")

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
        return at_most(f"at most {most} transformer fits", got, most, "fits")

    return bar
