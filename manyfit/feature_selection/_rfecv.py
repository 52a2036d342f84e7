"""RFECV: the eliminations of all splits, and that of all rows, from moments."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn import feature_selection
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from manyfit._compat import routing_enabled
from manyfit._compat.nested import eliminations_by
from manyfit.folds import Array, TransformedMoments, Unsupported
from manyfit.model_selection import Report
from manyfit.model_selection.validation.moment_scores import NEAR, ColumnScores, draw_fixed_splits

# Coefficients whose distance is less than so many times the bound of their error may come in another order
# in scikit-learn, whose own errors have about the same bound.
SAFE = 16.0
NEAR_NORMS = 1e-9

Importances = Callable[[Array], tuple[Array, Array]]
"""The norms of the coefficients of some features, and bounds of their errors."""


@dataclass
class Path:
    """What an elimination of scikit-learn's RFE notes before each step, and at its end."""

    n_features: list[int] = field(default_factory=list)
    supports: list[Array] = field(default_factory=list)
    rankings: list[Array] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)


def eliminate(n: int, n_left: int, step: float, fit: Importances) -> Path:
    """Eliminate features as ``RFE._fit`` does (scikit-learn 1.9); Unsupported where rounding decides."""
    size = int(max(1, step * n)) if 0.0 < step < 1.0 else int(step)
    support, ranking, path = np.ones(n, dtype=bool), np.ones(n, dtype=int), Path()
    while True:
        features = np.flatnonzero(support)
        path.n_features.append(len(features))
        path.supports.append(support.copy())
        path.rankings.append(ranking.copy())
        norms, errors = fit(features)
        if len(features) <= n_left:
            return path
        order, cut = np.argsort(norms, kind="stable"), min(size, len(features) - n_left)
        out, kept = order[:cut], order[cut:]
        if not (norms[out] + errors[out]).max() < (norms[kept] - errors[kept]).min() * (1.0 - NEAR_NORMS):
            raise Unsupported("rounding decides which feature is eliminated")
        support[features[out]] = False
        ranking[~support] += 1


class RFECV(feature_selection.RFECV):  # type: ignore[misc]
    """scikit-learn's RFECV, with two passes over the rows for all its fits.

    An elimination fits the estimator once for each number of features, on each split and on all rows. `Ridge`
    and `LinearRegression` need no fit on rows for that. Everything else is fitted by scikit-learn.

    Parameters
    ----------
    estimator : estimator
        Unfitted, with coefficients or importances.
    step : int or float, default=1
        Features that are eliminated at a time, or their share.
    min_features_to_select : int, default=1
        The elimination ends with so many.
    cv : int, cross-validation generator or iterable, default=None
        The splits.
    scoring : str or callable, default=None
        The score; None is the estimator's own.
    verbose : int, default=0
        Whether each fit prints a line; nothing is shared then.
    n_jobs : int, default=None
        Processes that make the fits which are not shared.
    importance_getter : str or callable, default="auto"
        Where importances are read; those of shared fits are ``coef_``.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        The selected features, those that scikit-learn selects.
    ranking_ : ndarray of int of shape (n_features,)
        1 for selected features; the larger, the earlier they were eliminated.
    n_features_ : int
        The number of selected features.
    estimator_ : estimator
        Fitted by scikit-learn to the selected features.
    cv_results_ : dict
        Scores, supports and rankings by number of features, with scikit-learn's keys.
    report_ : manyfit.model_selection.Report
        Fits asked for, made and shared, and why fits were left to scikit-learn.

    Notes
    -----
    Scores are scikit-learn's up to rounding. scikit-learn makes all fits if rounding could decide which
    feature is eliminated, or which number of features is best.

    References
    ----------
    sklearn.feature_selection.RFECV (1.9).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.feature_selection import RFECV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = RFECV(Ridge(alpha=0.1)).fit(X, y)
    >>> selector.ranking_
    array([6, 1, 1, 1, 2, 5, 1, 3, 1, 4])
    """

    report_: Report

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Select features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Targets.
        **params : dict
            `groups` for the splitter; others under metadata routing, and nothing is shared then.

        Returns
        -------
        self : object
            The fitted selector.
        """
        start, self.report_, why = time.perf_counter(), Report(), ""
        try:
            shared = _Eliminations(self, X, y, **params)
        except Exception as error:  # scikit-learn raises it again, if it is its own
            shared, why = None, str(error)
        if shared is None:
            super().fit(X, y, **params)
        else:
            with eliminations_by(shared.of_split, shared.of_all):
                super().fit(X, y, **params)
            self.report_.passes = shared.passes
        n_splits = sum(name.endswith("_support") for name in self.cv_results_)
        asked = (n_splits + 1) * len(self.cv_results_["n_features"])
        self.report_.note_fits(asked, asked if shared is None else 0, why)
        self.report_.seconds["total"] = time.perf_counter() - start
        return self


class _Eliminations:
    """The eliminations of all splits; Unsupported unless all of them, and the best number, are certain."""

    def __init__(self, selector: Any, X: Any, y: Any, groups: Any = None, **params: Any) -> None:
        if params or routing_enabled():
            raise Unsupported("parameters are passed on under metadata routing")
        if selector.verbose or selector.importance_getter not in ("auto", "coef_"):
            raise Unsupported("fits are printed, or their importances are no coefficients")
        if hasattr(selector.cv, "__next__"):
            raise Unsupported("the splits can be read only once")
        estimator, n = selector.estimator, X.shape[1]
        cv = check_cv(selector.cv, y, classifier=is_classifier(estimator))
        scorer = check_scoring(estimator, scoring=selector.scoring)
        self._scores = ColumnScores(estimator, X, y, draw_fixed_splits(cv, X, y, groups), scorer, n)
        if self._scores.group.steps:
            raise Unsupported("coefficients are of the columns behind the steps")
        self._n, self._step = n, selector.step
        least = min(selector.min_features_to_select, n)
        self._paths = [self._eliminate(view, i, least) for i, view in enumerate(self._scores.views)]
        number = _certain_best(
            np.sum([path.scores for path in self._paths], axis=0), self._paths[0].n_features
        )
        self._whole = self._eliminate(self._scores.data.whole_view, None, number)

    @property
    def passes(self) -> float:
        """Passes over the rows."""
        return self._scores.data.passes

    def _eliminate(self, view: TransformedMoments, i: int | None, least: int) -> Path:
        scores = list[float]()

        def fit(features: Array) -> tuple[Array, Array]:
            answers = self._scores.fit_view(view, features[None])
            if i is not None:
                scores.extend(self._scores.score(i, answers).tolist())
            coef = np.sqrt((answers.linear.coef[features, 0] ** 2).sum(axis=1))
            noise = np.sqrt((answers.noise[0] ** 2).sum())
            return coef, SAFE * noise * answers.unit[features, 0]

        path = eliminate(self._n, least, self._step, fit)
        path.scores = scores
        if np.isnan(scores).any():
            raise Unsupported("scores are not had from moments")
        return path

    def of_split(self, original: Callable[..., Any], rfe: Any, *args: Any) -> tuple[Any, ...]:
        """In place of scikit-learn's elimination on one split; they come in order."""
        path = self._paths.pop(0)
        return path.scores, path.supports, path.rankings, path.n_features

    def of_all(self, **params: Any) -> Any:
        """In place of RFE: the elimination on all rows, if it is fitted."""
        return _Eliminated(self._whole, **params)


class _Eliminated(feature_selection.RFE):  # type: ignore[misc]
    """An RFE whose fit finds what an elimination on moments has found."""

    def __init__(self, path: Path, **params: Any) -> None:
        super().__init__(**params)
        self.path = path

    def __sklearn_clone__(self) -> _Eliminated:
        return self  # the clones of RFECV are not fitted

    def fit(self, X: Any, y: Any) -> Self:
        """Take the path's end."""
        self.support_, self.ranking_ = self.path.supports[-1], self.path.rankings[-1]
        self.n_features_ = self.support_.sum()
        return self


def _certain_best(sums: Array, numbers: list[int]) -> int:
    """The number of features with the largest sum of scores, the smallest of equal ones."""
    best = int(np.argmax(sums))
    near = sums >= sums[best] - NEAR * len(sums) * max(abs(sums[best]), 1.0)
    if near.sum() > 1:
        raise Unsupported("rounding decides which number of features is best")
    return numbers[best]
