"""The verdict on one requirement of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """A requirement, the result, and whether it is met; None if it was not measured."""

    asked: str
    got: str
    met: bool | None


def at_least(asked: str, got: float | None, least: float, unit: str) -> Verdict:
    """Compare a result with its lower limit."""
    if got is None:
        return Verdict(asked, "not measured", None)
    return Verdict(asked, f"{got:.3g} {unit}", got >= least)


def at_most(asked: str, got: float | None, most: float, unit: str) -> Verdict:
    """Compare a result with its upper limit."""
    if got is None:
        return Verdict(asked, "not measured", None)
    return Verdict(asked, f"{got:.3g} {unit}", got <= most)
