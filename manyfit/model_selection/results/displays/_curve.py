"""SearchCurveDisplay: scores along one parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import check_matplotlib_support
from manyfit.model_selection.results._simpler import Simpler, direction, simplest, standard_errors
from manyfit.model_selection.results.displays import _style as style
from manyfit.model_selection.results.displays._parameters import Parameter, column_of
from manyfit.model_selection.results.displays._scores import (
    Others,
    SearchScores,
    choose_parameters,
    place,
    read_scores,
    select,
)

_MOST_IN_LEGEND, _MOST_BANDS, _FEWEST_FOR_AN_EDGE = 8, 3, 3


@dataclass(eq=False)
class SearchCurveDisplay:
    """Scores of a search along one of its parameters.

    Make it with `from_search`. The other parameters are those of the best setting, or one of them has a line
    for each of its values. Marked are the best setting, the simplest one within one standard error of it, and
    a best value at the edge of the range.

    Attributes
    ----------
    param_name : str
        The parameter along x.
    param_values : list
        Its distinct values: numbers in order, others as they occur in the search.
    line_name : str or None
        The parameter that has a line for each value.
    line_values : list
        Its values; ``[None]`` for a single line.
    candidates : ndarray of int, shape (n_lines, n_values)
        Rows of `cv_results_`; -1 where the search has no such setting.
    mean_test_scores : ndarray of float, shape (n_lines, n_values)
        Means over the splits; NaN where no setting is, or its fits failed.
    standard_errors : ndarray of float, shape (n_lines, n_values)
        Standard deviation over the splits (with n - 1) divided by the root of their number.
    test_scores : ndarray of float, shape (n_lines, n_values, n_splits)
        Scores of the splits.
    train_scores : ndarray of float or None, shape (n_lines, n_values, n_splits)
        Training scores, if the search has them.
    best_candidate : int
        Row of `cv_results_` of the best setting that is shown.
    simplest_candidate : int or None
        Row of the simplest setting on its line whose mean is at least `threshold`; None if it is not known
        which values give simpler models.
    threshold : float
        Mean of the best setting less its standard error.
    edge : {"lower", "upper"} or None
        The end of the range where the best value lies, for three or more numbers.
    joined : bool
        Whether lines join the settings; False if the settings of a line differ in other parameters, too.
    score_name : str
        The metric.

    See Also
    --------
    SearchHeatmapDisplay : Scores over two parameters.

    Notes
    -----
    A halving search has a line for each round, named by what grew from round to round.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.model_selection import GridSearchCV, SearchCurveDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.001, 0.01, 0.1, 1.0, 10.0]}).fit(X, y)
    >>> display = SearchCurveDisplay.from_search(search)
    >>> search.cv_results_["params"][display.simplest_candidate], display.edge
    ({'alpha': 0.1}, 'lower')
    """

    param_name: str
    param_values: list[Any]
    line_name: str | None
    line_values: list[Any]
    candidates: NDArray[np.intp]
    mean_test_scores: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    test_scores: NDArray[np.float64]
    train_scores: NDArray[np.float64] | None
    best_candidate: int
    simplest_candidate: int | None
    threshold: float
    edge: Literal["lower", "upper"] | None
    joined: bool
    score_name: str

    @classmethod
    def from_search(
        cls,
        search: Any,
        param_name: str | None = None,
        *,
        lines: str | None = None,
        others: Others = "auto",
        simpler: Simpler = "auto",
        metric: str | None = None,
        score_type: Literal["test", "train", "both"] = "test",
        band: Literal["standard_error", "folds"] | None = "standard_error",
        ax: Any = None,
    ) -> SearchCurveDisplay:
        """Draw the scores of a fitted search along one parameter.

        Parameters
        ----------
        search : fitted search
            A search of manyfit or scikit-learn, or any object with `cv_results_`.
        param_name : str, default=None
            The parameter along x. None: the only one in which settings differ.
        lines : str, default=None
            A parameter that has a line for each of its values.
        others : {"auto", "best", "all"}, default="auto"
            With "best" the remaining parameters are those of the best setting. With "all" they are any: each
            setting is a point, and a line joins the best settings. "auto" is "all" if no more than half of
            the values occur together with those of the best one, as in a randomized search.
        simpler : {"auto", "smaller", "larger"} or None, default="auto"
            The values of the parameter that give simpler models. "auto" knows common parameters: larger
            `alpha`, smaller `C` or `max_depth`. None leaves out the mark of the simplest setting.
        metric : str, default=None
            The metric of a search with several. None: the one by which it refits.
        score_type : {"test", "train", "both"}, default="test"
            The scores to draw; training scores need a search with ``return_train_score=True``.
        band : {"standard_error", "folds"} or None, default="standard_error"
            The area around a line: one standard error to both sides, or from the lowest to the highest split.
            More than three lines have none.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.

        Returns
        -------
        SearchCurveDisplay
            The display, with the numbers that it shows.

        Raises
        ------
        NotFittedError
            If the search is not fitted.
        TypeError
            If it is no search.
        ValueError
            If the search has no such parameter or metric, if it has several and none is named, or if no
            setting has a score.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_search")
        if simpler not in ("auto", "smaller", "larger", None):
            raise ValueError(f"simpler must be 'auto', 'smaller', 'larger' or None, got {simpler!r}.")
        scores = read_scores(search, metric, cls.__name__)
        if lines is None and param_name != scores.resource:
            lines = scores.resource
        if scores.resource not in (lines, param_name):
            scores = scores.last_rounds()
        if lines is None:
            shown = choose_parameters(scores, (param_name,), cls.__name__)
        else:
            shown = choose_parameters(scores, (param_name, lines), cls.__name__)
        kept, everything = select(scores, shown, others)
        joined = lines is not None or not everything
        display = cls._from_scores(scores.take(kept), shown[0], lines, simpler, joined)
        return display.plot(ax, score_type=score_type, band=band)

    @classmethod
    def _from_scores(
        cls, scores: SearchScores, name: str, lines: str | None, simpler: Simpler, joined: bool
    ) -> SearchCurveDisplay:
        axis, line_values = scores.parameters[name], [None]
        if lines is not None:
            table, line_values = place(scores, (lines, name)), list(scores.parameters[lines].values)
        elif joined:
            table = place(scores, (name, name)).diagonal()[np.newaxis]
        else:
            table = np.argsort(axis.codes, kind="stable")[np.newaxis]
        none = table < 0
        spread = none[..., np.newaxis]
        train = scores.train_folds
        chosen = _simplest(scores, table[(table == scores.best).any(axis=1)][0], axis, simpler)
        return cls(
            param_name=name,
            param_values=list(axis.values)
            if joined
            else [axis.values[code] for code in axis.codes[table[0]]],
            line_name=lines,
            line_values=line_values,
            candidates=np.where(none, -1, scores.candidates[table]),
            mean_test_scores=np.where(none, np.nan, scores.mean[table]),
            standard_errors=np.where(none, np.nan, scores.standard_errors[table]),
            test_scores=np.where(spread, np.nan, scores.folds[table]),
            train_scores=None if train is None else np.where(spread, np.nan, train[table]),
            best_candidate=int(scores.candidates[scores.best]),
            simplest_candidate=chosen,
            threshold=scores.threshold,
            edge=_edge(axis, int(axis.codes[scores.best])),
            joined=joined,
            score_name=scores.name,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        score_type: Literal["test", "train", "both"] = "test",
        band: Literal["standard_error", "folds"] | None = "standard_error",
    ) -> SearchCurveDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.
        score_type : {"test", "train", "both"}, default="test"
            The scores to draw; training scores need a search with ``return_train_score=True``.
        band : {"standard_error", "folds"} or None, default="standard_error"
            The area around a line, as in `from_search`.

        Returns
        -------
        SearchCurveDisplay
            The display itself, with `ax_`, `figure_`, `lines_` and `bands_`.
        """
        drawn = {"test": ("test",), "train": ("train",), "both": ("test", "train")}.get(score_type)
        if drawn is None or band not in ("standard_error", "folds", None):
            raise ValueError(
                "score_type must be 'test', 'train' or 'both', and band 'standard_error', 'folds' or None, "
                f"got {score_type!r} and {band!r}."
            )
        if "train" in drawn and self.train_scores is None:
            raise ValueError(f"score_type={score_type!r} needs a search with return_train_score=True.")
        ax = style.new_axes(ax, f"{type(self).__name__}.plot", (7.2, 4.2))
        axis = column_of(self.param_name, self.param_values)
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        for kind in drawn:
            self._draw_lines(ax, axis, kind, band, len(drawn) > 1)
        if "test" in drawn:
            self._mark(ax, axis)
        style.scale_axis(ax, "x", axis)
        ax.set_ylabel(f"mean {'' if len(drawn) > 1 else drawn[0] + ' '}{self.score_name}")
        if self.edge and "test" in drawn:
            end = "largest" if self.edge == "upper" else "smallest"
            note = f"the best value is the {end} that was tried"
            ax.set_title(note, loc="left", color=style.MUTED, fontsize="medium")
        style.make_plain(ax)
        style.put_legend(ax, "right", 2)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_lines(self, ax: Any, axis: Parameter, kind: str, band: str | None, both: bool) -> None:
        folds = self.test_scores if kind == "test" else self.train_scores
        assert folds is not None
        means = folds.mean(axis=2) if kind == "train" else self.mean_test_scores
        x, n = axis.positions[axis.codes], len(means)
        look = {"marker": "o", "markersize": 3.5, "linewidth": 1.6, "zorder": 3}
        if not self.joined or (n == 1 and not axis.is_ordered):
            look |= {"linestyle": "none", "alpha": 1.0 if self.joined else 0.6}
        elif kind == "train":
            look["linestyle"] = "--"
        for i, (mean, (colour, label)) in enumerate(zip(means, self._lines(kind, both), strict=True)):
            known = np.isfinite(mean)
            self.lines_ += ax.plot(x[known], mean[known], color=colour, label=label, **look)
            if band and n <= _MOST_BANDS and self.joined:
                low, high = _band(folds[i], mean, band)
                known &= np.isfinite(low)
                self.bands_.append(_draw_band(ax, axis, x[known], low[known], high[known], colour))

    def _lines(self, kind: str, both: bool) -> list[tuple[Any, str]]:
        """Colour and label of each line; of many lines only some have a label."""
        if self.line_name is None:
            label = f"mean {kind} score" if self.joined else "a setting"
            return [(style.MAIN if kind == "test" else style.MUTED, label)]
        values, n = column_of(self.line_name, self.line_values), len(self.line_values)
        colours = style.sequence_colours(n) if values.is_ordered else style.category_colours(n)
        named = {*np.linspace(0, n - 1, min(n, _MOST_IN_LEGEND)).round().astype(int).tolist()}
        labels = [f"{values.label} = {text}{f', {kind}' if both else ''}" for text in values.texts]
        return [
            (colour, label if i in named else "_nolegend_")
            for i, (colour, label) in enumerate(zip(colours, labels, strict=True))
        ]

    def _mark(self, ax: Any, axis: Parameter) -> None:
        """Mark the best setting, the simplest one that is as good, and the score that makes it so."""
        line, column = np.argwhere(self.candidates == self.best_candidate)[0]
        if np.isfinite(self.standard_errors[line, column]):
            label = "best less one standard error"
            ax.axhline(self.threshold, color=style.MUTED, linestyle=":", linewidth=1, zorder=0, label=label)
        marks = [(self.best_candidate, "best", {"marker": "D", "markersize": 7})]
        if self.simplest_candidate not in (None, self.best_candidate):
            hollow = {"marker": "o", "markersize": 10, "markerfacecolor": "none", "markeredgewidth": 1.6}
            marks.append((self.simplest_candidate, "simplest as good", hollow))
        for candidate, what, look in marks:
            line, column = np.argwhere(self.candidates == candidate)[0]
            code = axis.codes[column]
            ax.plot(
                axis.positions[code], self.mean_test_scores[line, column], color=style.BEST, zorder=5,
                linestyle="none", label=f"{what}: {axis.texts[code]}", **look,
            )  # fmt: skip


def _simplest(scores: SearchScores, line: NDArray[np.intp], axis: Parameter, simpler: Simpler) -> int | None:
    """Row of the simplest setting on a line that is within one standard error of the best."""
    if not axis.is_ordered:
        return None
    own = line[line >= 0]
    best = int(np.flatnonzero(own == scores.best)[0])
    way = direction(axis.name, simpler)
    if way is None:
        return None
    complexity = axis.codes[own].astype(float)[:, np.newaxis] * (-1 if way == "larger" else 1)
    return int(scores.candidates[own[simplest(complexity, scores.mean[own], best, scores.threshold)]])


def _edge(axis: Parameter, code: int) -> Literal["lower", "upper"] | None:
    if not axis.is_ordered or len(axis.values) < _FEWEST_FOR_AN_EDGE:
        return None
    return "lower" if code == 0 else "upper" if code == len(axis.values) - 1 else None


def _band(
    folds: NDArray[np.float64], mean: NDArray[np.float64], band: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lower and the upper end of the area around a line."""
    if band == "folds":
        return folds.min(axis=1), folds.max(axis=1)
    error = standard_errors(folds)
    return mean - error, mean + error


def _draw_band(ax: Any, axis: Parameter, x: Any, low: Any, high: Any, colour: Any) -> Any:
    if axis.is_ordered:
        return ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0, zorder=1)
    return ax.vlines(x, low, high, color=colour, alpha=0.3, linewidth=6, zorder=1)
