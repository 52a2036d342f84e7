"""SearchHeatmapDisplay: scores over two parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import check_matplotlib_support
from manyfit.model_selection.results.displays import _style as style
from manyfit.model_selection.results.displays._parameters import Parameter, column_of
from manyfit.model_selection.results.displays._scores import (
    Others,
    choose_parameters,
    place,
    read_scores,
    select,
)

_MOST_TEXTS = 100  # cells with their score in them
_SPARSE = 0.4  # with fewer cells filled, settings are points


@dataclass(eq=False)
class SearchHeatmapDisplay:
    """Scores of a search over two of its parameters, as coloured cells.

    Make it with `from_search`. The best cell and the cells within one standard error of it are outlined.

    Attributes
    ----------
    param_x : str
        The parameter along x.
    param_y : str
        The parameter along y.
    x_values : list
        Distinct values of `param_x`: numbers in order, others as they occur in the search.
    y_values : list
        Distinct values of `param_y`.
    candidates : ndarray of int, shape (n_y, n_x)
        Rows of `cv_results_`; -1 where the search has no such setting.
    mean_test_scores : ndarray of float, shape (n_y, n_x)
        Means over the splits; NaN where no setting is, or its fits failed.
    standard_errors : ndarray of float, shape (n_y, n_x)
        Standard deviation over the splits (with n - 1) divided by the root of their number.
    within_one_standard_error : ndarray of bool, shape (n_y, n_x)
        Whether the mean is at least `threshold`.
    best_candidate : int
        Row of `cv_results_` of the best setting that is shown.
    threshold : float
        Mean of the best setting less its standard error.
    score_name : str
        The metric.

    See Also
    --------
    SearchCurveDisplay : Scores along one parameter.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from manyfit.model_selection import GridSearchCV, SearchHeatmapDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> grid = {"pca__n_components": [2, 4, 8], "ridge__alpha": [0.001, 0.1, 10.0]}
    >>> search = GridSearchCV(make_pipeline(PCA(), Ridge()), grid).fit(X, y)
    >>> display = SearchHeatmapDisplay.from_search(search)
    >>> display.within_one_standard_error
    array([[False,  True,  True],
           [False,  True,  True],
           [False, False, False]])
    """

    param_x: str
    param_y: str
    x_values: list[Any]
    y_values: list[Any]
    candidates: NDArray[np.intp]
    mean_test_scores: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    within_one_standard_error: NDArray[np.bool_]
    best_candidate: int
    threshold: float
    score_name: str

    @classmethod
    def from_search(
        cls,
        search: Any,
        param_x: str | None = None,
        param_y: str | None = None,
        *,
        others: Others = "auto",
        metric: str | None = None,
        kind: Literal["auto", "cells", "points"] = "auto",
        ax: Any = None,
    ) -> SearchHeatmapDisplay:
        """Draw the scores of a fitted search over two parameters.

        Parameters
        ----------
        search : fitted search
            A search of manyfit or scikit-learn, or any object with `cv_results_`.
        param_x : str, default=None
            The parameter along x. None: the first of the two in which settings differ.
        param_y : str, default=None
            The parameter along y. None: the other one.
        others : {"auto", "best", "all"}, default="auto"
            With "best" the remaining parameters are those of the best setting. With "all" they are any, and a
            cell shows the best of its settings. "auto" is "all" if no more than half of the values
            occur together with those of the best one, as in a randomized search.
        metric : str, default=None
            The metric of a search with several. None: the one by which it refits.
        kind : {"auto", "cells", "points"}, default="auto"
            "points" draws each setting at its numbers, "cells" one cell for each pair of values. "auto" draws
            points if a parameter is a number and most pairs were not tried.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.

        Returns
        -------
        SearchHeatmapDisplay
            The display, with the numbers that it shows.

        Raises
        ------
        NotFittedError
            If the search is not fitted.
        TypeError
            If it is no search.
        ValueError
            If the search has no such parameter or metric, if settings differ in more than two parameters and
            these are not named, or if no setting has a score.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_search")
        scores = read_scores(search, metric, cls.__name__)
        if scores.resource not in (param_x, param_y):
            scores = scores.last_rounds()
        x, y = choose_parameters(scores, (param_x, param_y), cls.__name__)
        kept, _ = select(scores, (x, y), others)
        scores = scores.take(kept)
        table = place(scores, (y, x))
        none = table < 0
        mean = np.where(none, np.nan, scores.mean[table])
        display = cls(
            param_x=x,
            param_y=y,
            x_values=list(scores.parameters[x].values),
            y_values=list(scores.parameters[y].values),
            candidates=np.where(none, -1, scores.candidates[table]),
            mean_test_scores=mean,
            standard_errors=np.where(none, np.nan, scores.standard_errors[table]),
            within_one_standard_error=mean >= scores.threshold,
            best_candidate=int(scores.candidates[scores.best]),
            threshold=scores.threshold,
            score_name=scores.name,
        )
        return display.plot(ax, kind=kind)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Literal["auto", "cells", "points"] = "auto",
        cmap: str = "viridis",
        include_values: bool | None = None,
    ) -> SearchHeatmapDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.
        kind : {"auto", "cells", "points"}, default="auto"
            Cells or points, as in `from_search`.
        cmap : str, default="viridis"
            Colour map of the scores.
        include_values : bool, default=None
            Whether cells have their score as text. None: if there are at most 100 cells.

        Returns
        -------
        SearchHeatmapDisplay
            The display itself, with `ax_`, `figure_`, `image_` (cells or points), `colorbar_` and `texts_`.
        """
        if kind not in ("auto", "cells", "points"):
            raise ValueError(f"kind must be 'auto', 'cells' or 'points', got {kind!r}.")
        ax = style.new_axes(ax, f"{type(self).__name__}.plot", (6.8, 4.6))
        x, y = column_of(self.param_x, self.x_values), column_of(self.param_y, self.y_values)
        if kind == "auto":
            sparse = (self.candidates >= 0).mean() < _SPARSE
            kind = "points" if sparse and (x.is_ordered or y.is_ordered) else "cells"
        self.texts_: list[Any] = []
        if kind == "points":
            self._draw_points(ax, x, y, cmap)
        else:
            self._draw_cells(ax, x, y, cmap)
            if include_values or (include_values is None and self.candidates.size <= _MOST_TEXTS):
                self._write_values(ax)
        style.put_legend(ax, "above", 3)
        self.colorbar_ = ax.figure.colorbar(
            self.image_, ax=ax, label=f"mean test {self.score_name}", pad=0.03
        )
        self.colorbar_.outline.set_visible(False)
        self.colorbar_.ax.tick_params(colors=style.MUTED)
        style.make_plain(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_points(self, ax: Any, x: Parameter, y: Parameter, cmap: str) -> None:
        rows, columns = np.nonzero(np.isfinite(self.mean_test_scores))
        means = self.mean_test_scores[rows, columns]
        order = np.argsort(means, kind="stable")  # the best on top
        rows, columns, means = rows[order], columns[order], means[order]
        near = self.within_one_standard_error[rows, columns]
        places = x.positions[columns], y.positions[rows]
        edges = [style.INK if one else "none" for one in near]
        self.image_ = ax.scatter(*places, c=means, cmap=cmap, s=42, edgecolors=edges, linewidths=1.2)
        hollow = {"facecolors": "none", "linewidths": 1.2}
        ax.scatter([], [], s=42, edgecolors=style.INK, label="within one standard error", **hollow)
        best = self.candidates[rows, columns] == self.best_candidate
        best_places = [values[best] for values in places]
        hollow["linewidths"] = 2
        ax.scatter(*best_places, s=130, edgecolors=style.BEST, label="best", **hollow)
        style.scale_axis(ax, "x", x)
        style.scale_axis(ax, "y", y)

    def _draw_cells(self, ax: Any, x: Parameter, y: Parameter, cmap: str) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.patches import Rectangle

        shown = np.ma.masked_invalid(self.mean_test_scores)
        self.image_ = ax.imshow(shown, cmap=cmap, aspect="auto", origin="lower", interpolation="nearest")
        failed = np.argwhere((self.candidates >= 0) & np.isnan(self.mean_test_scores))
        look: dict[str, Any] = {"fill": False, "linewidth": 0, "edgecolor": style.MUTED, "hatch": "////"}
        for k, (row, column) in enumerate(failed):
            label = "fits failed" if k == 0 else "_nolegend_"
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, label=label, **look))
        if np.isfinite(self.standard_errors).any():
            edges = _outline(self.within_one_standard_error)
            lines = LineCollection(
                edges, colors=style.INK, linewidths=2, capstyle="projecting", zorder=3, clip_on=False,
                label="within one standard error",
            )  # fmt: skip
            ax.add_collection(lines)
        row, column = np.argwhere(self.candidates == self.best_candidate)[0]
        frame = Rectangle(
            (column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=style.BEST, linewidth=3, zorder=4,
            clip_on=False, label="best",
        )  # fmt: skip
        ax.add_patch(frame)
        style.set_texts(ax.xaxis, np.arange(len(x.texts)), x.texts)
        style.set_texts(ax.yaxis, np.arange(len(y.texts)), y.texts)
        ax.set(xlabel=x.label, ylabel=y.label)
        ax.spines[:].set_visible(False)

    def _write_values(self, ax: Any) -> None:
        """Write scores into cells, in the colour that can be read there."""
        scale = self.image_.norm
        digits = _digits(self.mean_test_scores)
        for (row, column), mean in np.ndenumerate(self.mean_test_scores):
            if np.isfinite(mean):
                luminance = np.dot(self.image_.cmap(scale(mean))[:3], (0.299, 0.587, 0.114))
                self.texts_.append(
                    ax.text(
                        column, row, f"{mean:.{digits}f}" if digits < 5 else f"{mean:.3g}", ha="center",
                        va="center", color=style.INK if luminance > 0.5 else "white", fontsize="small",
                    )
                )  # fmt: skip


def _digits(means: NDArray[np.float64]) -> int:
    """Decimals that tell scores apart to a hundredth of their range; 5 if they need too many."""
    spread = float(np.nanmax(means) - np.nanmin(means)) or float(np.nanmax(np.abs(means))) or 1.0
    return int(np.clip(2 - np.floor(np.log10(spread)), 0, 5)) if np.nanmax(np.abs(means)) < 1e5 else 5


def _outline(inside: NDArray[np.bool_]) -> list[list[tuple[float, float]]]:
    """Edges between cells that are inside and cells that are not, in coordinates of the image."""
    framed = np.pad(inside, 1)
    edges = []
    for row, column in np.argwhere(framed[1:, 1:-1] != framed[:-1, 1:-1]):
        edges.append([(column - 0.5, row - 0.5), (column + 0.5, row - 0.5)])
    for row, column in np.argwhere(framed[1:-1, 1:] != framed[1:-1, :-1]):
        edges.append([(column - 0.5, row - 0.5), (column - 0.5, row + 0.5)])
    return edges
