"""ScoreTimeDisplay: scores against times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import check_matplotlib_support
from manyfit.model_selection.results.displays import _style as style
from manyfit.model_selection.results.displays._parameters import describe_settings
from manyfit.model_selection.results.displays._scores import OWN_FITS, read_scores

Kind = Literal["fit", "score", "total"]
_MOST_NAMED = 8
_NARROW_LINE = 40  # characters
_WIDE = 20  # times that differ by more are drawn on a log axis


@dataclass(eq=False)
class ScoreTimeDisplay:
    """Scores of all settings against their time, with the line of those that no other setting beats in both.

    Make it with `from_search`.

    Attributes
    ----------
    times : ndarray of float, shape (n_settings,)
        Seconds, means over the splits.
    mean_test_scores : ndarray of float, shape (n_settings,)
        Means over the splits; NaN for fits that failed.
    on_front : ndarray of bool, shape (n_settings,)
        Whether each setting that takes no longer has a lower score (the Pareto front). Of equal ones the
        first counts.
    is_shared : ndarray of bool, shape (n_settings,)
        Whether the time is the setting's part of work that served several settings, divided evenly among
        them. False for searches of scikit-learn.
    params : list of dict
        The settings.
    candidates : ndarray of int, shape (n_settings,)
        Rows of `cv_results_`.
    best_candidate : int
        Row of `cv_results_` of the best setting.
    time_name : {"fit", "score", "total"}
        What the times are of; "total" is the sum of both.
    score_name : str
        The metric.

    Notes
    -----
    The time of a shared fit says little about the setting alone. With ``sharing="none"`` each setting has its
    own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from manyfit.model_selection import GridSearchCV, ScoreTimeDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5, 25]}, sharing="none").fit(X, y)
    >>> display = ScoreTimeDisplay.from_search(search, time="score")
    >>> bool(display.on_front[display.best_candidate])
    True
    """

    times: NDArray[np.float64]
    mean_test_scores: NDArray[np.float64]
    on_front: NDArray[np.bool_]
    is_shared: NDArray[np.bool_]
    params: list[Mapping[str, Any]]
    candidates: NDArray[np.intp]
    best_candidate: int
    time_name: Kind
    score_name: str

    @classmethod
    def from_search(
        cls, search: Any, *, time: Kind = "fit", metric: str | None = None, ax: Any = None
    ) -> ScoreTimeDisplay:
        """Draw scores of a fitted search against times.

        Parameters
        ----------
        search : fitted search
            A search of manyfit or scikit-learn, or any object with `cv_results_`. Of a halving search each
            setting counts with its last round.
        time : {"fit", "score", "total"}, default="fit"
            The time of a fit, of its test scores, or both.
        metric : str, default=None
            The metric of a search with several. None: the one by which it refits.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.

        Returns
        -------
        ScoreTimeDisplay
            The display, with the numbers that it shows.

        Raises
        ------
        NotFittedError
            If the search is not fitted.
        TypeError
            If it is no search.
        ValueError
            If the search has no such metric, or `time` is another word, or if no setting has a score.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_search")
        if time not in ("fit", "score", "total"):
            raise ValueError(f"time must be 'fit', 'score' or 'total', got {time!r}.")
        scores = read_scores(search, metric, cls.__name__).last_rounds()
        results = search.cv_results_
        kinds = ("fit", "score") if time == "total" else (time,)
        times = np.sum([np.asarray(results[f"mean_{kind}_time"], dtype=float) for kind in kinds], axis=0)
        times = times[scores.candidates]
        display = cls(
            times,
            scores.mean,
            _front(times, scores.mean),
            np.isin(scores.candidates, _shared_candidates(search)),
            list(scores.params),
            scores.candidates,
            int(scores.candidates[scores.best]),
            time,
            scores.name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> ScoreTimeDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.

        Returns
        -------
        ScoreTimeDisplay
            The display itself, with `ax_`, `figure_`, `points_` and `front_`.
        """
        ax = style.new_axes(ax, f"{type(self).__name__}.plot", (9, 4.4))
        known = np.isfinite(self.mean_test_scores) & np.isfinite(self.times)
        self.points_: list[Any] = []
        for shared, marker, label in (
            (False, "o", "a setting"),
            (True, "s", "a setting, part of a shared time"),
        ):
            own = known & (self.is_shared == shared)
            if own.any():
                face = "none" if shared else style.PALE
                self.points_ += ax.plot(
                    self.times[own], self.mean_test_scores[own], marker, markersize=5, color=style.PALE,
                    markerfacecolor=face, label=label, zorder=2,
                )  # fmt: skip
        order = np.flatnonzero(self.on_front)[np.argsort(self.times[self.on_front], kind="stable")]
        x, y = self.times[order], self.mean_test_scores[order]
        (self.front_,) = ax.plot(
            x, y, drawstyle="steps-post", color=style.MAIN, linewidth=1.6, marker="o", markersize=5, zorder=3,
            label="no faster setting is as good",
        )  # fmt: skip
        best = self.candidates == self.best_candidate
        ax.plot(
            self.times[best],
            self.mean_test_scores[best],
            "D",
            markersize=8,
            color=style.BEST,
            zorder=4,
            label="best",
        )
        if (
            (x > 0).all()
            and (self.times[known] > 0).all()
            and np.ptp(np.log(self.times[known])) > np.log(_WIDE)
        ):
            ax.set_xscale("log")
        elif style.is_narrow(ax):
            ax.locator_params(axis="x", nbins=4)
        self._name_front(ax, order[-_MOST_NAMED:])
        parts = {"fit": "fit", "score": "score", "total": "fit and score"}
        ax.set(xlabel=f"mean seconds to {parts[self.time_name]}", ylabel=f"mean test {self.score_name}")
        style.make_plain(ax)
        ax.margins(x=0.06, y=0.1)
        style.put_legend(ax, "right")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _name_front(self, ax: Any, order: NDArray[np.intp]) -> None:
        """Number the settings of the front, and name them in the legend."""
        texts = describe_settings(self.params, list(order))
        if style.is_narrow(ax):
            texts = [fill(text, _NARROW_LINE) for text in texts]
        for number, (i, text) in enumerate(zip(order, texts, strict=True), 1):
            at = (self.times[i], self.mean_test_scores[i])
            ax.annotate(
                str(number), at, xytext=(-4, 5), textcoords="offset points", ha="right", color=style.MAIN,
                fontsize="small", fontweight="bold", zorder=5,
            )  # fmt: skip
            look = {"marker": f"${number}$", "markersize": 6, "color": style.MAIN, "linestyle": "none"}
            ax.plot([], [], label=text, **look)


def _front(times: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The settings whose score is higher than that of all others that take no longer."""
    front, highest = np.zeros(len(times), dtype=bool), -np.inf
    for i in np.lexsort((-means, times)):
        if means[i] > highest:
            front[i], highest = True, means[i]
    return front


def _shared_candidates(search: Any) -> list[int]:
    """Rows of `cv_results_` of groups whose fits were made together, if not all were left to scikit-learn."""
    groups = getattr(getattr(search, "report_", None), "groups", [])
    groups = [group for group in groups if group["kind"] not in OWN_FITS]
    groups = [group for group in groups if sum(group["left_to_sklearn"].values()) < group["fits_requested"]]
    return [c for group in groups for c in group.get("candidates", ())]
