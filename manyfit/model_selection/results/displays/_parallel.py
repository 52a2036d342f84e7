"""SearchParallelDisplay: all parameters of a search side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import check_matplotlib_support
from manyfit.model_selection.results.displays import _style as style
from manyfit.model_selection.results.displays._parameters import (
    Parameter,
    column_of,
    number_text,
    short_names,
)
from manyfit.model_selection.results.displays._scores import choose_parameters, read_scores, varying

_MOST_TICKS = 8
_COLOURED = 0.75  # a few very low scores would take all colours: the lowest quarter shares one


@dataclass(eq=False)
class SearchParallelDisplay:
    """All settings of a search, as lines over one axis for each parameter, coloured by score.

    Make it with `from_search`. The last axis is the score.

    Attributes
    ----------
    param_names : list of str
        The parameters, from left to right.
    param_values : list of list
        For each parameter the value of each setting; ``NOT_SET`` prints as "not set".
    positions : ndarray of float, shape (n_settings, n_params)
        Places on the axes, from 0 at the bottom to 1.
    mean_test_scores : ndarray of float, shape (n_settings,)
        Means over the splits; NaN for fits that failed.
    candidates : ndarray of int, shape (n_settings,)
        Rows of `cv_results_`.
    best_candidate : int
        Row of `cv_results_` of the best setting.
    score_name : str
        The metric.

    See Also
    --------
    SearchHeatmapDisplay : Scores over two parameters.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.model_selection import GridSearchCV, SearchParallelDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0], "fit_intercept": [True, False]}).fit(X, y)
    >>> display = SearchParallelDisplay.from_search(search)
    >>> display.positions.shape
    (6, 2)
    """

    param_names: list[str]
    param_values: list[list[Any]]
    positions: NDArray[np.float64]
    mean_test_scores: NDArray[np.float64]
    candidates: NDArray[np.intp]
    best_candidate: int
    score_name: str

    @classmethod
    def from_search(
        cls, search: Any, param_names: list[str] | None = None, *, metric: str | None = None, ax: Any = None
    ) -> SearchParallelDisplay:
        """Draw all settings of a fitted search.

        Parameters
        ----------
        search : fitted search
            A search of manyfit or scikit-learn, or any object with `cv_results_`. Of a halving search each
            setting counts with its last round.
        param_names : list of str, default=None
            The parameters to show, from left to right. None: all in which settings differ.
        metric : str, default=None
            The metric of a search with several. None: the one by which it refits.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.

        Returns
        -------
        SearchParallelDisplay
            The display, with the numbers that it shows.

        Raises
        ------
        NotFittedError
            If the search is not fitted.
        TypeError
            If it is no search.
        ValueError
            If the search has no such parameter or metric, or if no setting has a score.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_search")
        scores = read_scores(search, metric, cls.__name__).last_rounds()
        names = varying(scores) if param_names is None else list(param_names)
        names = choose_parameters(scores, tuple(names), cls.__name__)
        if not names:
            raise ValueError(f"{cls.__name__} has nothing to show: the search has no parameters.")
        parameters = [scores.parameters[name] for name in names]
        display = cls(
            names,
            [[one.values[code] for code in one.codes] for one in parameters],
            np.column_stack([_heights(one)[one.codes] for one in parameters]),
            scores.mean,
            scores.candidates,
            int(scores.candidates[scores.best]),
            scores.name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None, *, cmap: str = "viridis") -> SearchParallelDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.
        cmap : str, default="viridis"
            Colour map of the scores.

        Returns
        -------
        SearchParallelDisplay
            The display itself, with `ax_`, `figure_`, `lines_` and `best_line_`.
        """
        n = len(self.param_names)
        ax = style.new_axes(ax, f"{type(self).__name__}.plot", (max(6.4, 1.4 + 1.5 * n), 4.4))
        low, high = np.nanmin(self.mean_test_scores), np.nanmax(self.mean_test_scores)
        range_ = (high - low) or 1.0
        points = np.column_stack([self.positions, (self.mean_test_scores - low) / range_])
        if high == low:
            points[:, -1] = np.where(np.isnan(points[:, -1]), np.nan, 0.5)
        self._draw_lines(ax, points, cmap)
        labels = short_names(self.param_names)
        for i, (name, values) in enumerate(zip(self.param_names, self.param_values, strict=True)):
            _draw_axis(ax, i, *_ticks(column_of(name, values)))
        self._draw_scores(ax, n, low, high)
        ax.set_xticks(
            range(n + 1), [*(labels[name] for name in self.param_names), f"mean test\n{self.score_name}"]
        )
        if style.is_narrow(ax):
            style.turn_texts(ax.xaxis)
        ax.set(xlim=(-0.1, n + 0.1), ylim=(-0.04, 1.04), yticks=[])
        ax.tick_params(axis="x", length=0, pad=8, labelcolor=style.INK, top=False)
        ax.spines[:].set_visible(False)
        style.put_legend(ax, "above", 2)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_scores(self, ax: Any, x: int, low: float, high: float) -> None:
        """Draw the axis of scores as a scale of their colours."""
        scores = np.linspace(low, high, 256)[:, np.newaxis] if high > low else np.full((1, 1), low)
        ax.imshow(
            scores, cmap=self.lines_.get_cmap(), norm=self.lines_.norm, extent=(x + 0.01, x + 0.07, 0, 1),
            origin="lower", aspect="auto",
        )  # fmt: skip
        heights = np.linspace(0, 1, 5) if high > low else np.array([0.5])
        _draw_axis(ax, x, heights, [number_text(low + height * (high - low)) for height in heights], 0.07)

    def _draw_lines(self, ax: Any, points: NDArray[np.float64], cmap: str) -> None:
        """Draw good settings over bad ones, the best over all, failed ones in grey below."""
        from matplotlib.collections import LineCollection

        order = np.argsort(self.mean_test_scores, kind="stable")
        known = order[np.isfinite(self.mean_test_scores[order])]
        failed = order[np.isnan(self.mean_test_scores[order])]
        best = self.candidates == self.best_candidate
        known = known[~best[known]]
        x = np.arange(points.shape[1])
        alpha = float(np.clip(40 / max(len(known), 1), 0.25, 0.85))
        lines = LineCollection(
            [np.column_stack([x, points[i]]) for i in known], cmap=cmap, linewidths=1.1, alpha=alpha, zorder=2
        )
        lines.set_array(self.mean_test_scores[known])
        lines.set_clim(_lowest_colour(self.mean_test_scores), np.nanmax(self.mean_test_scores))
        ax.add_collection(lines)
        self.lines_ = lines
        if len(failed):
            ends = [np.column_stack([x[:-1], points[i, :-1]]) for i in failed]
            look: dict[str, Any] = {"colors": style.PALE, "linestyles": ":", "zorder": 1}
            ax.add_collection(LineCollection(ends, linewidths=1.1, label="fits failed", **look))
        best_look = {"color": style.BEST, "linewidth": 2.4, "markersize": 5, "zorder": 4}
        (self.best_line_,) = ax.plot(x, points[best][0], "-o", label="best", **best_look)


def _heights(parameter: Parameter) -> NDArray[np.float64]:
    """Places of the distinct values on an axis from 0 to 1."""
    places = np.log(parameter.positions) if parameter.scale == "log" else parameter.positions
    if len(places) == 1:
        return np.array([0.5])
    return np.asarray((places - places[0]) / (places[-1] - places[0]))


def _ticks(parameter: Parameter) -> tuple[NDArray[np.float64], list[str]]:
    """Heights and texts of ticks: some of the values, always the first and the last."""
    heights, texts = _heights(parameter), parameter.texts
    if not len(texts) > _MOST_TICKS:
        return heights, list(texts)
    targets = np.linspace(0, 1, 5)
    chosen = sorted({int(np.argmin(np.abs(heights - target))) for target in targets})
    if parameter.is_ordered:
        return heights[chosen], [number_text(float(parameter.values[i])) for i in chosen]
    return heights[chosen], [texts[i] for i in chosen]


def _draw_axis(ax: Any, x: int, heights: Any, texts: list[str], gap: float = 0.0) -> None:
    ax.vlines(x, 0, 1, color=style.MUTED, linewidth=0.8, zorder=3)
    free = -np.inf
    for height, text in zip(heights, texts, strict=True):
        if height - free < 0.045:  # the text would touch the one below
            continue
        free = height
        ax.annotate(
            text, (x + gap, height), xytext=(5, 0), textcoords="offset points", va="center", color=style.INK,
            zorder=5, fontsize=9, annotation_clip=False,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip


def _lowest_colour(means: NDArray[np.float64]) -> float:
    """The score of the lowest colour, above the lowest score if a few are far below the others."""
    lowest, quantile, highest = np.nanmin(means), np.nanquantile(means, 1 - _COLOURED), np.nanmax(means)
    is_far = highest > quantile and (highest - lowest) > 4 * (highest - quantile)
    return float(quantile if is_far else lowest)
