"""The figure of the demo: scores and times of each search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

Curves = Mapping[Any, tuple[NDArray[Any], NDArray[Any]]]

_INK, _MUTED, _OURS, _THEIRS = "#222222", "#6b6b6b", "#0b6e8f", "#b9bec4"


@dataclass(frozen=True)
class Panel:
    """One row of the figure: curves of scores by manyfit and scikit-learn, and the seconds of each search.

    ``lines`` completes the sentence about the lines. A single line has the key None and no label.
    """

    title: str
    axis: str
    lines: str
    score: str
    ours: Curves
    theirs: Curves
    seconds: Mapping[str, float]
    fits: int
    difference: float


def draw(panels: list[Panel], path: Path) -> None:
    """Draw one row for each panel and save the figure as PNG."""
    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15)
    figure = Figure(figsize=(11, 4.1 * len(panels)), layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 2, width_ratios=(1.5, 1), squeeze=False)
    for (left, right), panel in zip(axes, panels, strict=True):
        _scores(left, panel)
        _times(right, panel)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _scores(axes: Axes, panel: Panel) -> None:
    colours = colormaps["viridis_r"](np.linspace(0.2, 0.95, len(panel.ours)))
    for colour, (value, (x, score)) in zip(colours, panel.ours.items(), strict=True):
        axes.plot(x, score, color=colour, linewidth=1.8, zorder=2)
        axes.plot(*panel.theirs[value], "o", color=colour, markerfacecolor="none", markersize=5.5, zorder=3)
    axes.set_xscale("log")
    axes.set_xlabel(panel.axis)
    axes.set_ylabel(panel.score)
    _titles(axes, panel.title, f"lines manyfit, circles scikit-learn{panel.lines}")
    if None not in panel.ours:
        _label_lines(axes, panel, list(colours))
    _plain(axes)


def _label_lines(axes: Axes, panel: Panel, colours: list[Any]) -> None:
    """Write the values of the lines at their left ends; lines that run into each other share a label."""
    low, high = axes.get_ylim()
    left = min(x[0] for x, _ in panel.ours.values())
    order = list(panel.ours)
    groups: list[list[Any]] = []
    for value in sorted(order, key=lambda value: panel.ours[value][1][0]):
        if groups and panel.ours[value][1][0] - panel.ours[groups[-1][-1]][1][0] < 0.04 * (high - low):
            groups[-1].append(value)
        else:
            groups.append([value])
    for group in groups:
        places = sorted(order.index(value) for value in group)
        together = len(places) > 1 and places[-1] - places[0] == len(places) - 1
        axes.annotate(
            f"{order[places[0]]}-{order[places[-1]]}" if together else ", ".join(map(str, sorted(group))),
            (left, float(np.mean([panel.ours[value][1][0] for value in group]))),
            xytext=(-8, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            color=colours[places[-1]],
            fontweight="bold",
        )
    right = max(x[-1] for x, _ in panel.ours.values())
    axes.set_xlim(left * (left / right) ** 0.15, right * (right / left) ** 0.03)


def _times(axes: Axes, panel: Panel) -> None:
    names, seconds = list(panel.seconds), list(panel.seconds.values())
    axes.barh(names, seconds, color=[_OURS, _THEIRS], height=0.5)
    axes.invert_yaxis()
    for place, value in enumerate(seconds):
        axes.annotate(
            f"{value:.2g} s" if value < 10 else f"{value:.0f} s",
            (value, place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=_INK,
            fontweight="bold",
        )
    ratio = seconds[1] / seconds[0]
    gap = f"scores differ by {panel.difference:.1e}" if panel.difference else "equal scores"
    _titles(axes, f"{ratio:.3g} times as fast", f"{panel.fits} fits, one run each, {gap}")
    axes.set_xlabel("seconds, with the refit")
    axes.set_xlim(0, max(seconds) * 1.2)
    _plain(axes)
    axes.tick_params(axis="y", length=0)


def _titles(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title, loc="left", color=_INK, fontweight="bold", pad=22)
    axes.annotate(
        below,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7),
        textcoords="offset points",
        color=_MUTED,
        fontsize=9.5,
        in_layout=False,
    )


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_THEIRS)
    axes.tick_params(colors=_MUTED)
    axes.xaxis.label.set_color(_MUTED)
    axes.yaxis.label.set_color(_MUTED)
