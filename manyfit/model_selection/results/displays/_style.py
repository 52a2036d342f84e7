"""The look of all displays: colours that colour-blind readers can tell apart, plain axes, legends outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyfit._compat import check_matplotlib_support
from manyfit.model_selection.results.displays._parameters import Parameter

INK, MUTED, PALE = "#222222", "#6b6b6b", "#c9ced3"
MAIN, BEST = "#0b6e8f", "#d55e00"
# Okabe and Ito's colours without the one that marks the best setting.
CATEGORIES = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MOST_TICKS = 20


def new_axes(ax: Any, caller: str, size: tuple[float, float]) -> Any:
    """The axes that were passed, or those of a new figure of some inches."""
    check_matplotlib_support(caller)
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def sequence_colours(n: int) -> list[Any]:
    """Colours from light to dark for lines that have an order."""
    from matplotlib import colormaps

    return list(colormaps["viridis_r"](np.linspace(0.2, 0.95, n))) if n > 1 else [MAIN]


def category_colours(n: int) -> list[Any]:
    """Colours for lines that have no order."""
    return [CATEGORIES[i % len(CATEGORIES)] for i in range(n)]


def make_plain(ax: Any) -> None:
    """Take away what is not needed to read the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.tick_params(colors=MUTED, which="both")
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(INK)


def put_legend(ax: Any) -> None:
    """A legend on the right, outside of the data."""
    ax.legend(
        loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0, frameon=False, labelcolor=INK,
        alignment="left",
    )  # fmt: skip


def put_note(ax: Any, text: str) -> None:
    """A line above the axes."""
    ax.set_title(text, loc="left", color=MUTED, fontsize="medium")


def scale_axis(ax: Any, which: str, parameter: Parameter) -> None:
    """Give the x or y axis the scale, ticks and label of a parameter."""
    axis = getattr(ax, f"{which}axis")
    if parameter.scale == "categories":
        set_texts(axis, parameter.positions, parameter.texts)
        getattr(ax, f"set_{which}lim")(-0.5, len(parameter.values) - 0.5)
    else:
        getattr(ax, f"set_{which}scale")(parameter.scale)
        if all(isinstance(value, int | np.integer) for value in parameter.values):
            _whole_numbers(axis, parameter)
    axis.set_label_text(parameter.label)


def set_texts(axis: Any, positions: Any, texts: Sequence[str]) -> None:
    """Ticks with texts, of which some are left out if there are many; long ones on the x axis are turned."""
    step = -(-len(texts) // _MOST_TICKS)
    axis.set_ticks(list(positions)[::step], list(texts)[::step])
    axis.set_tick_params(length=0)
    if axis.axis_name == "x" and sum(map(len, texts[::step])) > 40:
        for label in axis.get_ticklabels():
            label.set(rotation=35, ha="right", rotation_mode="anchor")


def _whole_numbers(axis: Any, parameter: Parameter) -> None:
    """Ticks at the values themselves where these are few whole numbers."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    if len(parameter.values) <= 8:
        axis.set_ticks(parameter.positions, parameter.texts)
        axis.set_minor_locator(NullLocator())
    elif parameter.scale == "linear":
        axis.set_major_locator(MaxNLocator(integer=True))
