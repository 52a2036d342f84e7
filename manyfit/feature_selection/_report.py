"""Counts of the fits of a selector."""

from __future__ import annotations

from manyfit.model_selection import Report


def count_fits(report: Report, asked: int, alone: int, why: str) -> None:
    """Add fits to a report: so many asked for, and so many of them left to scikit-learn for a reason."""
    report.add({"fits_requested": asked, "fits_done": alone, "fits_shared": asked - alone})
    if alone:
        report.left_to_sklearn[why] = report.left_to_sklearn.get(why, 0) + alone
