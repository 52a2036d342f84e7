"""SequentialFeatureSelector: the scores of all candidates from the moments of the folds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn import feature_selection
from sklearn.metrics import check_scoring
from sklearn.model_selection import cross_val_score

from manyfit.folds import Array, Unsupported
from manyfit.model_selection import Report
from manyfit.model_selection.validation.moment_scores import NEAR, ColumnScores, draw_fixed_splits

TIED = "rounding could decide which score is best, or moments do not give it"


class SequentialFeatureSelector(feature_selection.SequentialFeatureSelector):  # type: ignore[misc]
    """scikit-learn's SequentialFeatureSelector, with one pass over the rows for all its fits.

    A step of the selection scores the estimator on as many sets of features as there are candidates, on each
    split. Estimators that read second moments only, such as `Ridge` and `LinearRegression`, alone or behind
    a `StandardScaler`, need no fit on rows for that. Everything else is fitted by scikit-learn.

    Parameters
    ----------
    estimator : estimator
        Unfitted; a clone is fitted on sets of features.
    n_features_to_select : "auto", int or float, default="auto"
        Number, or share, of features to select; see scikit-learn.
    tol : float, default=None
        With "auto": the selection ends where the score grows by less.
    direction : {"forward", "backward"}, default="forward"
        Whether features are added or removed.
    scoring : str or callable, default=None
        The score; None is the estimator's own.
    cv : int, cross-validation generator or iterable, default=5
        The splits. They are shared if scikit-learn would draw the same ones for each candidate.
    n_jobs : int, default=None
        Processes that make the fits which are not shared.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        The selected features, those that scikit-learn selects.
    n_features_to_select_ : int
        Their number.
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Their names, if X has them.
    report_ : manyfit.model_selection.Report
        Fits asked for, made and shared, and why fits were left to scikit-learn.

    Notes
    -----
    Scores are scikit-learn's up to rounding. Candidates whose scores differ by less than 1e-8 are fitted by
    scikit-learn, and its numbers decide. With `tol`, so is the candidate that each step chooses.

    References
    ----------
    sklearn.feature_selection.SequentialFeatureSelector (1.9).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from manyfit.feature_selection import SequentialFeatureSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = SequentialFeatureSelector(Ridge(alpha=0.1), n_features_to_select=3).fit(X, y)
    >>> selector.get_support(indices=True)
    array([2, 3, 8])
    """

    report_: Report

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Select features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), default=None
            Targets.
        **params : dict
            Passed on under metadata routing; nothing is shared then.

        Returns
        -------
        self : object
            The fitted selector.
        """
        start, self.report_ = time.perf_counter(), Report()
        try:
            super().fit(X, y, **params)
        finally:
            shared: ColumnScores | None = self.__dict__.pop("_shared", None)
        if shared is not None:
            self.report_.passes = shared.data.passes
        self.report_.seconds["total"] = time.perf_counter() - start
        return self

    def _get_best_new_feature_score(
        self, estimator: Any, X: Any, y: Any, cv: Any, current_mask: Array, **params: Any
    ) -> tuple[Any, Any]:
        """scikit-learn's step: the best feature to add, or to remove, and its score."""
        left, n_splits = np.flatnonzero(~current_mask), _count_splits(cv, X, y)
        if "_shared" not in vars(self):
            self._shared, self._why = self._prepare(estimator, X, y, cv, params, len(left))
        if self._shared is None:
            self.report_.note_fits(len(left) * n_splits, len(left) * n_splits, self._why)
            return super()._get_best_new_feature_score(estimator, X, y, cv, current_mask, **params)  # type: ignore[no-any-return]
        masks = current_mask | np.eye(X.shape[1], dtype=bool)[left]
        masks = ~masks if self.direction == "backward" else masks
        scores = self._shared.scores(np.nonzero(masks)[1].reshape(len(left), -1)).mean(axis=1)

        def fit(j: int) -> float:
            """The score that scikit-learn gives a candidate."""
            Xj, options = X[:, masks[j]], {"cv": cv, "scoring": self.scoring, "n_jobs": self.n_jobs}
            return float(cross_val_score(estimator, Xj, y, **options).mean())

        fitted = settle_best(scores, fit, always=self.tol is not None)
        self.report_.note_fits(len(left) * n_splits, fitted * n_splits, TIED)
        by_feature = dict(zip(left.tolist(), scores.tolist(), strict=True))
        best = max(by_feature, key=lambda feature: by_feature[feature])  # as scikit-learn chooses
        return best, by_feature[best]

    def _prepare(
        self, estimator: Any, X: Any, y: Any, cv: Any, params: Any, n_candidates: int
    ) -> tuple[ColumnScores | None, str]:
        """The scores by moments, or why there are none."""
        try:
            if params:
                raise Unsupported("parameters are passed on under metadata routing")
            splits = draw_fixed_splits(cv, X, y)
            scorer = check_scoring(estimator, scoring=self.scoring)
            return ColumnScores(estimator, X, y, splits, scorer, n_candidates), ""
        except Exception as error:  # scikit-learn raises it again, if it is its own
            return None, str(error)


def _count_splits(cv: Any, X: Any, y: Any) -> int:
    """The number of splits; 0 if the splitter needs more to tell, as groups."""
    try:
        return int(cv.get_n_splits(X, y))
    except (TypeError, ValueError):
        return 0


def settle_best(scores: Array, fit: Callable[[int], float], always: bool = False) -> int:
    """Let scikit-learn's numbers take the place of all scores that decide which is best.

    Parameters
    ----------
    scores : ndarray of shape (m,)
        Scores up to rounding, NaN where there are none; written to.
    fit : callable
        Gives the score at a position by scikit-learn.
    always : bool
        Whether the best score is to be scikit-learn's even where nothing is near it.

    Returns
    -------
    int
        How many were fitted.
    """
    fitted = np.isnan(scores)
    for j in np.flatnonzero(fitted):
        scores[j] = fit(int(j))
    while not np.isnan(scores).all():
        best = np.nanmax(scores)
        near = scores >= best - NEAR * max(abs(best), 1.0)
        todo = np.flatnonzero(near & ~fitted)
        if not todo.size or (near.sum() == 1 and not always):
            break
        for j in todo:
            scores[j], fitted[j] = fit(int(j)), True
    return int(fitted.sum())
