"""The reports of what scikit-learn's searches and functions have done while manyfit was installed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from manyfit.model_selection import Report


@dataclass(frozen=True)
class Entry:
    """One search or cross-validation, with its report."""

    title: str
    report: Report


# The last report of each search that still exists, by its identity.
_reports: dict[int, tuple[weakref.ref[Any], Report]] = {}
_last: Report | None = None
_records: list[list[Entry]] = []


def keep(title: str, report: Report, search: Any = None) -> None:
    """Keep a report as the last one, and as that of its search."""
    global _last
    _last = report
    if search is not None:
        key = id(search)
        _reports[key] = weakref.ref(search, lambda _: _reports.pop(key, None)), report
    for record in _records:
        record.append(Entry(title, report))


@contextmanager
def recorded() -> Iterator[list[Entry]]:
    """Within it all reports are also added to a list."""
    record: list[Entry] = []
    _records.append(record)
    try:
        yield record
    finally:
        _records[:] = [one for one in _records if one is not record]


def last_report() -> Report | None:
    """Return the report of the search or cross-validation that ended last in this process.

    Those of scikit-learn's own classes and functions count, while `manyfit.install` is in force.

    Returns
    -------
    manyfit.model_selection.Report or None
        None if none has ended. If scikit-learn did all the work, ``left_to_sklearn`` says why.

    See Also
    --------
    report_of : The report of one search.

    Examples
    --------
    >>> import manyfit
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with manyfit.installed():
    ...     scores = cross_val_score(Ridge(), X, y, cv=5)
    >>> manyfit.last_report().fits_shared
    5
    """
    return _last


def report_of(search: Any) -> Report | None:
    """Return the report of the last `fit` of a search of scikit-learn's.

    Parameters
    ----------
    search : GridSearchCV or RandomizedSearchCV
        A search of scikit-learn's, or of a subclass, that was fitted while `manyfit.install` was in force.

    Returns
    -------
    manyfit.model_selection.Report or None
        None if it was not fitted in this process, or before `install`. If scikit-learn did all the work,
        ``left_to_sklearn`` says why.

    Notes
    -----
    The search itself has scikit-learn's attributes only, so a clone or a pickle of it has no report.

    Examples
    --------
    >>> import manyfit
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with manyfit.installed():
    ...     search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(X, y)
    >>> report = manyfit.report_of(search)
    >>> report.fits_requested, report.fits_shared
    (10, 10)
    """
    _, report = _reports.get(id(search), (None, None))
    return report
