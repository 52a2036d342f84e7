"""Requirements on results: a bar is a function of a result that returns a verdict."""

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
    """Require a factor over the faster of scikit-learn's two searches."""

    def bar(result: Result) -> Verdict:
        peer = result.best("scikit-learn")
        got = _times_faster(result, peer.median if peer else None)
        return at_least(f"at least {least:g} times scikit-learn", got, least, "times")

    return bar


def not_slower_than_best(*kinds: str) -> Bar:
    """Require a time no longer than that of the fastest contender of these kinds."""

    def bar(result: Result) -> Verdict:
        peer = result.best(*kinds)
        got = _times_faster(result, peer.median if peer else None)
        asked = f"not slower than {peer.name if peer else 'the best of the others'}"
        return at_least(asked, got, 1.0, "times as fast")

    return bar


def not_slower_than(name: str) -> Bar:
    """Require a time no longer than one contender's."""

    def bar(result: Result) -> Verdict:
        row, given_up = result.row(name), result.given_up(name)
        got = _times_faster(result, row.median if row else given_up)
        unit = "times as fast" if given_up is None else "times as fast or more"
        return at_least(f"not slower than {name}", got, 1.0, unit)

    return bar


def cost_in_fits(most: float) -> Bar:
    """Limit the cost in fits of the most expensive setting on one split."""

    def bar(result: Result) -> Verdict:
        ours, one = result.best("ours"), result.one_fit
        got = ours.median / one if ours is not None and ours.median and one else None
        return at_most(f"at most {most:g} fit{'s' * (most != 1)}", got, most, "fits")

    return bar


def near_ideal(least: float) -> Bar:
    """Require a share of the speed of cores that divide the reference's fits without any loss."""

    def bar(result: Result) -> Verdict:
        ours, ideal = result.best("ours"), result.ideal
        got = ideal / ours.median if ours is not None and ours.median and ideal else None
        return at_least(f"at least {least:g} of the ideal of {result.cores} cores", got, least, "of it")

    return bar


def over_ideal(most: float) -> Bar:
    """Limit the seconds beyond the time of cores that divide the reference's fits without loss."""

    def bar(result: Result) -> Verdict:
        ours, ideal = result.best("ours"), result.ideal
        got = ours.median - ideal if ours is not None and ours.median and ideal else None
        return at_most(f"at most {most:g} s over the ideal of {result.cores} cores", got, most, "s over it")

    return bar


def _median_of(call: Callable[[float, float], float], one: Row | None, peer: Row | None) -> float | None:
    """The median over pairs of neighbouring runs, because a slow machine is slow for both runs of a pair."""
    if one is None or peer is None:
        return None
    n = min(len(one.seconds), len(peer.seconds))
    return statistics.median(map(call, one.seconds[-n:], peer.seconds[-n:]))


def over(most: float, ours: str, other: str) -> Bar:
    """Limit the seconds by which one contender is slower than another, at the median of the rounds."""

    def bar(result: Result) -> Verdict:
        got = _median_of(lambda one, peer: one - peer, result.row(ours), result.row(other))
        return at_most(f"{ours}: at most {most:g} s over {other}", got, most, "s over it")

    return bar


def share_over(most: float, ours: str, other: str) -> Bar:
    """Limit the share by which one contender is slower than another, at the median of the rounds."""

    def bar(result: Result) -> Verdict:
        got = _median_of(lambda one, peer: one / peer - 1.0, result.row(ours), result.row(other))
        return at_most(f"{ours}: at most {most:.0%} over {other}", got, most, "of it")

    return bar


def peak_memory(most: float) -> Bar:
    """Limit the memory beyond X in units of X, worker processes included."""

    def bar(result: Result) -> Verdict:
        ours = result.best("ours")
        got = ours.memory.total / result.bytes if ours is not None and ours.memory else None
        return at_most(f"at most {most:g} times X beyond X", got, most, "times X")

    return bar


def same_scores(most: float) -> Bar:
    """Limit the difference of manyfit's scores from the reference's, over means and splits."""

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
    """Require one fit of these transformers per distinct setting and split.

    Fits in this process are counted from outside; fits of workers come from manyfit's report.
    """

    def bar(result: Result) -> Verdict:
        most = distinct * result.splits
        ours = [row for row in result.rows if row.kind == "ours" and row.failure is None]
        counted = [sum(row.fits[step] for step in steps) for row in ours if row.fits is not None]
        told = [row.report["transformer_fits"] for row in ours if "transformer_fits" in row.report]
        got = max([*counted, *told], default=None)
        return at_most(f"at most {most} transformer fits", got, most, "fits")

    return bar
