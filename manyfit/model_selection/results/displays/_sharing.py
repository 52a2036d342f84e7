"""SharingDisplay: what a search shared, and where its time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from manyfit._compat import check_matplotlib_support
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results.displays import _style as style
from manyfit.model_selection.results.displays._scores import OWN_FITS

_MOST_GROUPS, _LONGEST = 10, 34


@dataclass(eq=False)
class SharingDisplay:
    """Fits that a search of manyfit asked for and made, group by group, and its seconds by phase.

    Make it with `from_search`, or before the fit with `from_plan`.

    Attributes
    ----------
    groups : list of dict
        For each kind of sharing and chain of estimators: kind, estimator, settings, fits_requested,
        fits_single (made one by one, by scikit-learn), fits_shared (answered by shared work) and
        fits_undecided (a plan does not know).
    seconds : dict of str to float
        By phase, as in `Report.seconds`; empty for a plan.
    fits_requested : int
        Settings times splits.
    fits_done : int or None
        Fits that were made, those of families included; None for a plan.
    family_fits : int
        Those of `fits_done` that families made to answer their settings.
    fits_restored : int
        Fits whose results were in the checkpoint.
    workers : int
        Workers of the fits made one by one; seconds of work are sums over them.

    See Also
    --------
    Report : The numbers, as `search.report_`.
    Plan : The groups, before anything is fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.model_selection import GridSearchCV, SharingDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
    >>> display = SharingDisplay.from_search(search)
    >>> display.fits_requested, display.fits_done
    (15, 0)
    """

    groups: list[dict[str, Any]]
    seconds: dict[str, float]
    fits_requested: int
    fits_done: int | None
    family_fits: int = 0
    fits_restored: int = 0
    workers: int = 1

    @classmethod
    def from_search(cls, search: Any, *, ax: Any = None) -> SharingDisplay:
        """Draw what a fitted search of manyfit has shared.

        Parameters
        ----------
        search : fitted search
            A search with `report_`, as manyfit's have.
        ax : matplotlib Axes or two of them, default=None
            Axes for fits, and for seconds if there are two. None: those of a new figure.

        Returns
        -------
        SharingDisplay
            The display, with the numbers that it shows.

        Raises
        ------
        NotFittedError
            If the search is not fitted.
        TypeError
            If it has no report, as scikit-learn's searches have none.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_search")
        report = getattr(search, "report_", None)
        if not isinstance(report, Report):
            name = f"{type(search).__module__.partition('.')[0]}'s {type(search).__name__}"
            if hasattr(search, "sharing") and not hasattr(search, "cv_results_"):
                raise NotFittedError(
                    f"{cls.__name__} shows a fitted search, and {name} is not: call fit first."
                )
            raise TypeError(f"{cls.__name__} reads report_, which searches of manyfit have, got {name}.")
        groups = [_group(one, _fits_single(one), 0) for one in report.groups]
        display = cls(
            _joined(groups),
            dict(report.seconds),
            report.fits_requested,
            report.fits_done,
            report.family_fits,
            report.fits_restored,
            report.workers,
        )
        return display.plot(ax)

    @classmethod
    def from_plan(cls, plan: Any, *, ax: Any = None) -> SharingDisplay:
        """Draw what a search is going to share.

        Parameters
        ----------
        plan : Plan
            What ``search.plan(X, y)`` returns.
        ax : matplotlib Axes, default=None
            Axes for the fits. None: those of a new figure.

        Returns
        -------
        SharingDisplay
            The display, with the numbers that it shows.
        """
        check_matplotlib_support(f"{cls.__name__}.from_plan")
        groups = [
            _group(
                {
                    "kind": one.kind,
                    "estimator": one.estimator,
                    "settings": len(one.candidates),
                    "fits_requested": one.fits_requested,
                },
                one.fits_requested if one.kind in OWN_FITS else 0,
                min(one.fits_undecided, one.fits_requested),
            )
            for one in plan.groups
        ]
        return cls(_joined(groups), {}, plan.fits_requested, None, workers=plan.n_workers).plot(ax)

    def plot(self, ax: Any = None) -> SharingDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or two of them, default=None
            Axes for fits, and for seconds if there are two. None: those of a new figure.

        Returns
        -------
        SharingDisplay
            The display itself, with `ax_` (fits), `axes_` (all), `figure_`, and the bars `fit_bars_` and
            `second_bars_`.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        phases = self._phases()
        axes = self._axes(ax, bool(phases))
        self._draw_fits(axes[0])
        self.second_bars_: Any = None
        if len(axes) > 1 and phases:
            self._draw_seconds(axes[1], phases)
        self.ax_, self.axes_, self.figure_ = axes[0], tuple(axes), axes[0].figure
        return self

    def _axes(self, ax: Any, with_seconds: bool) -> list[Any]:
        if ax is not None:
            given = list(np.ravel(np.asarray(ax, dtype=object)))
            if len(given) not in (1, 2):
                raise ValueError(f"{type(self).__name__} draws on one or two axes, got {len(given)}.")
            return given
        import matplotlib.pyplot as plt

        size = (10 if with_seconds else 6.4, 1.5 + 0.55 * self._n_rows())
        widths = [1.5, 1][: 1 + with_seconds]
        _, axes = plt.subplots(
            1, len(widths), figsize=size, width_ratios=widths, layout="constrained", squeeze=False
        )
        return list(axes[0])

    def _n_rows(self) -> float:
        """Rows of the taller half of the figure, where a row is a group."""
        return max(min(len(self.groups), _MOST_GROUPS + 1), 0.7 * len(self._phases()), 2)

    def _draw_fits(self, ax: Any) -> None:
        groups = _largest(self.groups)
        rows = np.arange(len(groups))
        parts = (
            ("fits_shared", "answered by shared work", style.MAIN, ""),
            ("fits_undecided", "decided in the fit", "white", "////"),
            ("fits_single", "fitted one by one", style.PALE, ""),
        )
        left, height = np.zeros(len(groups)), 0.6 * len(groups) / self._n_rows()
        height *= 0.5 if style.is_narrow(ax) else 1.0  # titles stand above the bars
        self.fit_bars_: dict[str, Any] = {}
        for name, label, colour, hatch in parts:
            width = np.array([group[name] for group in groups], dtype=float)
            if width.any():
                self.fit_bars_[name] = ax.barh(
                    rows, width, left=left, color=colour, hatch=hatch, label=label, height=height,
                    edgecolor=style.MAIN if hatch else "none", linewidth=0,
                )  # fmt: skip
            left += width
        for row, group in enumerate(groups):
            _write(ax, left[row], row, _share_text(group))
        titles = [_title(group) for group in groups]
        if style.is_narrow(ax):
            ax.set_yticks([])
            for row, title in enumerate(titles):
                ax.text(0, row - height / 2, title, va="bottom", color=style.INK, fontsize="small")
        else:
            ax.set_yticks(rows, titles)
        ax.set_xlim(0, left.max() * 1.3)
        ax.set_ylim(len(groups) - 0.45, -0.55)
        ax.set_xlabel("fits asked for")
        _head(ax, self._verdict())
        style.put_legend(ax, "below", 3)

    def _verdict(self) -> str:
        if self.fits_done is None:
            shared, undecided = (
                sum(g[key] for g in self.groups) for key in ("fits_shared", "fits_undecided")
            )
            maybe = f", {undecided} more may be" if undecided else ""
            return f"{shared} of {self.fits_requested} fits will be shared{maybe}"
        restored = f", {self.fits_restored} restored" if self.fits_restored else ""
        families = f" ({self.family_fits} by families)" if self.family_fits else ""
        return f"{self.fits_requested} fits asked for, {self.fits_done} made{families}{restored}"

    def _phases(self) -> dict[str, float]:
        """Seconds of each phase but the total; what the total has beyond them is "other"."""
        phases = {kind: seconds for kind, seconds in self.seconds.items() if kind != "total"}
        other = self.seconds.get("total", 0.0) - sum(phases.values())
        return {**phases, "other": other} if other > 0 and phases else phases

    def _draw_seconds(self, ax: Any, phases: Mapping[str, float]) -> None:
        rows = np.arange(len(phases))
        self.second_bars_ = ax.barh(rows, list(phases.values()), color=style.MUTED, height=0.55)
        for row, seconds in enumerate(phases.values()):
            _write(ax, seconds, row, f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s")
        ax.set_yticks(rows, list(phases))
        ax.set_xlim(0, max(*phases.values(), 1e-9) * 1.25)
        ax.set_ylim(len(phases) - 0.45, -0.55)
        ax.set_xlabel("seconds" if self.workers == 1 else f"seconds, summed over {self.workers} workers")
        _head(ax, f"{self.seconds['total']:.3g} s in all" if "total" in self.seconds else "")


def _fits_single(group: Mapping[str, Any]) -> int:
    if group["kind"] in OWN_FITS:
        return int(group["fits_requested"])
    return int(sum(group["left_to_sklearn"].values()))


def _group(known: Mapping[str, Any], single: int, undecided: int) -> dict[str, Any]:
    names = ("kind", "estimator", "settings", "fits_requested")
    shared = known["fits_requested"] - single - undecided
    counts = {"fits_single": single, "fits_shared": shared, "fits_undecided": undecided}
    return {**{name: known[name] for name in names}, **counts}


def _joined(groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    together: dict[tuple[str, str], dict[str, Any]] = {}
    for group in groups:
        one = together.setdefault((group["kind"], group["estimator"]), {})
        for name, value in group.items():
            one[name] = value if isinstance(value, str) else one.get(name, 0) + value
    return list(together.values())


def _largest(groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(groups) <= _MOST_GROUPS + 1:
        return list(groups)
    order = sorted(groups, key=lambda group: -group["fits_requested"])
    rest = order[_MOST_GROUPS:]
    (other,) = _joined([{**group, "kind": f"{len(rest)} more groups", "estimator": ""} for group in rest])
    return [*order[:_MOST_GROUPS], other]


def _title(group: Mapping[str, Any]) -> str:
    chain = group["estimator"]
    if len(chain) > _LONGEST:
        chain = f"… > {chain.rpartition(' > ')[2]}"
    return f"{group['kind']}\n{chain[:_LONGEST]}" if chain else str(group["kind"])


def _share_text(group: Mapping[str, Any]) -> str:
    n, shared = group["fits_requested"], group["fits_shared"]
    if shared == n:
        return f"{n}, all shared"
    return f"{n}, {shared} shared" if shared else str(n)


def _write(ax: Any, x: float, y: float, text: str) -> None:
    ax.annotate(
        text,
        (x, y),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        color=style.INK,
        fontsize="small",
    )


def _head(ax: Any, text: str) -> None:
    style.make_plain(ax)
    ax.set_title(text, loc="left", color=style.INK, fontsize="medium", fontweight="bold")
    ax.tick_params(axis="y", length=0, labelcolor=style.INK)
