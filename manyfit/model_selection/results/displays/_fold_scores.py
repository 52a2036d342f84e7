"""FoldScoresDisplay: is the best setting better than the next ones?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit._compat import check_matplotlib_support
from manyfit.model_selection.results.displays import _paired_tests as paired
from manyfit.model_selection.results.displays import _style as style
from manyfit.model_selection.results.displays._parameters import read_parameters, shorten
from manyfit.model_selection.results.displays._scores import read_scores

_LONGEST, _SEPARATOR = 60, "  ·  "


@dataclass(eq=False)
class FoldScoresDisplay:
    """Differences of settings to the best one, split by split, with a paired test.

    Make it with `from_search`.

    Attributes
    ----------
    differences : ndarray of float, shape (n_settings, n_splits)
        Score of a setting on a split less the score of the best setting on that split; the settings with the
        highest means come first. Settings whose fits failed on any split are left out.
    p_values : ndarray of float, shape (n_settings,)
        Two-sided p-values of "the mean difference is zero"; NaN for the best setting and with one split.
    intervals : ndarray of float, shape (n_settings, 2)
        95 % confidence intervals of mean differences, by Student's t; NaN for other tests.
    params : list of dict
        The settings.
    candidates : ndarray of int, shape (n_settings,)
        Rows of `cv_results_`.
    best_candidate : int
        Row of `cv_results_` of the best setting.
    test : {"corrected t", "t", "wilcoxon"} or None
        The test.
    ratio : float
        Test rows per training row, by which "corrected t" widens the variance.
    score_name : str
        The metric.

    Notes
    -----
    Training sets of splits overlap, so that their scores are not independent, and the ordinary t-test finds
    too many differences. "corrected t" multiplies the variance of the mean by ``1 + n_splits * ratio``
    (Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52, 2003). Wilcoxon's
    p-value is at least ``2 ** (1 - n_splits)``: 0.06 for five splits. The best setting was chosen by these
    same scores, and several settings are tested: read the p-values as a guide.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.model_selection import FoldScoresDisplay, GridSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 0.2, 10.0]}).fit(X, y)
    >>> display = FoldScoresDisplay.from_search(search)
    >>> display.p_values.round(3)
    array([  nan, 0.413, 0.   ])
    """

    differences: NDArray[np.float64]
    p_values: NDArray[np.float64]
    intervals: NDArray[np.float64]
    params: list[Mapping[str, Any]]
    candidates: NDArray[np.intp]
    best_candidate: int
    test: paired.Test
    ratio: float
    score_name: str

    @classmethod
    def from_search(
        cls,
        search: Any,
        *,
        test: paired.Test = "corrected t",
        test_train_ratio: float | None = None,
        metric: str | None = None,
        n_settings: int = 15,
        ax: Any = None,
    ) -> FoldScoresDisplay:
        """Draw differences to the best setting of a fitted search.

        Parameters
        ----------
        search : fitted search
            A search of manyfit or scikit-learn, or any object with `cv_results_`. Of a halving search the
            settings of the last round count.
        test : {"corrected t", "t", "wilcoxon"} or None, default="corrected t"
            The paired test of each setting against the best one.
        test_train_ratio : float, default=None
            Test rows per training row, for "corrected t". None: as the splitter's `test_size` or `n_repeats`
            say, else ``1 / (n_splits - 1)``, as for `KFold`.
        metric : str, default=None
            The metric of a search with several. None: the one by which it refits.
        n_settings : int, default=15
            How many of the best settings to draw. The attributes have all.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.

        Returns
        -------
        FoldScoresDisplay
            The display, with the numbers that it shows.

        Raises
        ------
        NotFittedError
            If the search is not fitted.
        TypeError
            If it is no search.
        ValueError
            If the search has no such metric, if `test` or `n_settings` is wrong, or if no setting has a
            score.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_search")
        if test not in paired.TESTS:
            raise ValueError(f"test must be one of {', '.join(map(repr, paired.TESTS))}, got {test!r}.")
        scores = read_scores(search, metric, cls.__name__).final_round()
        scores = scores.take(np.isfinite(scores.folds).all(axis=1))
        rest = np.delete(np.arange(len(scores.mean)), scores.best)
        order = np.append(scores.best, rest[np.argsort(-scores.mean[rest], kind="stable")])
        folds = scores.folds[order]
        differences = folds - folds[0]
        ratio = test_train_ratio
        if ratio is None:
            ratio = paired.test_train_ratio(search, folds.shape[1])
        p_values = paired.p_values(differences, test, ratio, float(np.abs(folds).max()))
        p_values[0] = np.nan
        display = cls(
            differences,
            p_values,
            _intervals(differences, test, ratio),
            [scores.params[i] for i in order],
            scores.candidates[order],
            int(scores.candidates[scores.best]),
            test,
            ratio,
            scores.name,
        )
        return display.plot(ax, n_settings=n_settings)

    def plot(self, ax: Any = None, *, n_settings: int = 15) -> FoldScoresDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None: those of a new figure.
        n_settings : int, default=15
            How many of the best settings to draw.

        Returns
        -------
        FoldScoresDisplay
            The display itself, with `ax_`, `figure_`, `points_` (splits), `means_` and `texts_` (p-values).
        """
        if n_settings < 1:
            raise ValueError(f"n_settings must be at least 1, got {n_settings!r}.")
        n = min(n_settings, len(self.candidates))
        ax = style.new_axes(ax, f"{type(self).__name__}.plot", (8.4, 1.8 + 0.3 * n))
        rows, differences = np.arange(n), self.differences[:n]
        means = differences.mean(axis=1)
        ax.axvline(0, color=style.BEST, linewidth=1.2, zorder=1)
        known = np.isfinite(self.intervals[:n, 0])
        if known.any():
            ax.hlines(
                rows[known], *self.intervals[:n][known].T, color=style.MAIN, linewidth=1.4, zorder=2,
                label="95 % interval",
            )  # fmt: skip
        (self.points_,) = ax.plot(
            differences.ravel(), np.repeat(rows, differences.shape[1]), "|", color=style.MUTED, markersize=9,
            label="one split", zorder=3,
        )  # fmt: skip
        (self.means_,) = ax.plot(
            means[1:], rows[1:], "o", color=style.MAIN, markersize=5.5, label="mean", zorder=4
        )
        ax.plot(0, 0, "D", color=style.BEST, markersize=7, label="best", zorder=5)
        narrow = style.is_narrow(ax)
        head, *texts = _rows_of_values(self.params, n, "\n" if narrow else _SEPARATOR)
        ax.set_yticks([-1, *rows], [head, *texts])
        ax.set_ylim(n - 0.4, -1.6 - 0.7 * head.count("\n"))
        less = "\n" if narrow else " "
        ax.set_xlabel(f"test {self.score_name} less that of{less}the best on the same split")
        self._write_p_values(ax, n)
        style.make_plain(ax)
        ax.tick_params(axis="y", length=0, labelcolor=style.INK)
        ax.get_yticklabels()[0].set(color=style.MUTED, va="bottom" if narrow else "center")
        style.put_legend(ax, "above", 4)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _write_p_values(self, ax: Any, n: int) -> None:
        """Write p-values behind the rows, on the right of the axes."""
        self.texts_ = []
        if self.test is None or self.differences.shape[1] < 2:
            return
        look = {"xycoords": ("axes fraction", "data"), "annotation_clip": False, "va": "center"}
        for row in range(1, n):
            p = self.p_values[row]
            text = "< 0.001" if p < 0.001 else f"{p:.3f}"
            self.texts_.append(ax.annotate(text, (1.03, row), color=style.INK, fontsize="small", **look))
        heading = "p" if style.is_narrow(ax) else f"p, {self.test}"
        ax.annotate(heading, (1.03, -1), color=style.MUTED, fontsize="small", **look)


def _rows_of_values(params: list[Mapping[str, Any]], n: int, separator: str) -> list[str]:
    """The parameters in which the first settings differ, and their values for each of these.

    `separator`: between the names of the parameters.
    """
    shown = [one for one in read_parameters(params[:n]).values() if one.varies]
    shown = shown or list(read_parameters(params[:n]).values())
    head = separator.join(one.label for one in shown)
    rows = [_SEPARATOR.join(shorten(one.texts[one.codes[i]], 16) for one in shown) for i in range(n)]
    return [shorten(text, _LONGEST) for text in (head, *rows)]


def _intervals(differences: NDArray[np.float64], test: paired.Test, ratio: float) -> NDArray[np.float64]:
    """95 % intervals of mean differences; NaN for other tests, and for the first row, the best setting."""
    n_splits = differences.shape[1]
    if test not in ("corrected t", "t") or n_splits < 2:
        return np.full((len(differences), 2), np.nan)
    from scipy.stats import t

    half = t.ppf(0.975, n_splits - 1) * paired.standard_errors(differences, test, ratio)
    half[0] = np.nan
    mean = differences.mean(axis=1)
    return np.column_stack([mean - half, mean + half])
