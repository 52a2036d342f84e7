"""The look of all displays: colours that colour-blind readers can tell apart, plain axes, legends outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from manyfit._compat import check_matplotlib_support
from manyfit.model_selection.results.displays._parameters import Parameter

INK, MUTED, PALE = "#222222", "#6b6b6b", "#c9ced3"
MAIN, BEST = "#0b6e8f", "#d55e00"
# Okabe and Ito's colours without the one that marks the best setting.
CATEGORIES = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
NARROW = 5.0  # inches
_SHARE = 0.775  # of the width of a figure is that of its axes, before matplotlib makes room for texts
_BELOW = 0.6  # inches between axes and a legend below them
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


def is_narrow(ax: Any) -> bool:
    """Whether axes are too narrow for texts beside the data, as in a picture for a phone."""
    alone = len(ax.figure.axes) == 1  # the width of axes is that of the figure, their texts included
    width = ax.figure.bbox.width if alone else ax.bbox.width / _SHARE
    return bool(width / ax.figure.dpi < NARROW)


def put_legend(ax: Any, where: Literal["right", "above", "below"], columns: int = 1) -> None:
    """A legend outside of the data, of as many columns as there is room for.

    In narrow axes it is as wide as the figure, and one for the right is below. "below" leaves room for the
    label of the x axis.
    """
    look = {"frameon": False, "borderaxespad": 0, "labelcolor": INK, "alignment": "left"}
    narrow = is_narrow(ax)
    if where == "right" and not narrow:
        ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1), **look)
        return
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    inches = ax.figure.dpi_scale_trans
    x, room = ax.transAxes, ax.bbox.width
    if narrow and len(ax.figure.axes) == 1:
        x, room = ax.figure.transFigure, ax.figure.bbox.width
    above = where == "above"
    y = ax.transAxes + ScaledTranslation(0, 0.05 if above else -_BELOW, inches)
    look |= {"bbox_transform": blended_transform_factory(x, y), "bbox_to_anchor": (0, 1.0 if above else 0)}
    look |= {"loc": "lower left" if above else "upper left", "columnspacing": 1.2, "handletextpad": 0.5}
    look |= {"fontsize": "small"} if narrow else {}
    for n in range(columns, 0, -1):
        legend = ax.legend(ncols=n, **look)
        if n == 1 or legend.get_window_extent().width <= room:
            return


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
    if axis.axis_name == "x" and sum(map(len, texts[::step])) > (20 if is_narrow(axis.axes) else 40):
        turn_texts(axis)


def turn_texts(axis: Any) -> None:
    """Turn the texts of ticks of the x axis, so that long ones do not overlap."""
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
