"""Fits that stop by the score of the fold's own test rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from manyfit._compat import safe_indexing
from manyfit.arrays import is_xp_array, to_host
from manyfit.model_selection.early_stopping._boosters import Booster, booster_of

N_ITER = "best_n_iter"
"""The entry of a result with the iterations that the predictions of its fit use."""
OPTIMISTIC = (
    "early_stopping='fold': the test part of each fold chooses the number of iterations and scores it, so"
    " that scores are optimistic"
)


class FoldStopping:
    """Fits one estimator with the test rows of its fold, X and y, as validation set.

    The rows are as the first step takes them. `cut` gives the parameters of ``fit`` for them, by name.
    """

    def __init__(self, X: Any, y: Any, cut: Callable[[], Mapping[str, Any]]) -> None:
        self.X, self.y, self._cut = X, y, cut
        self._n_iter: int | None = None

    @property
    def found(self) -> dict[str, Any]:
        """The entry of a result; None in it if the fit has failed."""
        return {N_ITER: self._n_iter}

    def attach(self, estimator: Any) -> Any:
        """Let the next call of ``estimator.fit`` be that of `fit`; returns the estimator."""

        def fit(*rows: Any, **params: Any) -> Any:
            del estimator.fit
            return self.fit(estimator, *rows, **params)

        estimator.fit = fit
        return estimator

    def fit(self, estimator: Any, *rows: Any, **params: Any) -> Any:
        """Fit; the steps of pipelines are fitted on the training rows alone, and transform the test rows."""
        pipelines, last = split_pipelines(estimator)
        booster = booster_of(last)
        if booster is not None:
            # A pipeline calls it when its other steps are fitted.
            last.fit = partial(self._fit_last, booster, last, pipelines, params)
        try:
            return estimator.fit(*rows, **params)
        finally:
            vars(last).pop("fit", None)

    def _fit_last(
        self,
        booster: Booster,
        last: Any,
        pipelines: list[Pipeline],
        given: Mapping[str, Any],
        X: Any,
        y: Any,
        **own: Any,
    ) -> Any:
        del last.fit
        X_test, y_test, rows = self.X, self.y, self._rows(booster, own, given)
        for pipeline in pipelines:
            X_test = pipeline[:-1].transform(X_test) if len(pipeline) > 1 else X_test
        if is_classifier(last) and (known := _known(y, y_test)) is not None:
            X_test, y_test = safe_indexing(X_test, known), safe_indexing(y_test, known)
            rows = {name: safe_indexing(value, known) for name, value in rows.items()}
        booster.fit(last, X, y, {**booster.fit_params(last, X_test, y_test, rows), **own})
        self._n_iter = booster.n_iter(last)
        return last

    def _rows(self, booster: Booster, own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the test rows for those parameters that `last.fit` was given for each row."""
        found = {}
        for name in booster.row_params:
            if own.get(name) is None:
                continue
            # Pipelines, and metadata routing, pass the same object on under another name.
            outer = [key for key, value in given.items() if value is own[name]]
            if not outer:
                raise ValueError(f"early_stopping='fold' does not know {name} of the test part.")
            found[name] = self._cut()[outer[0]]
        return found


def _known(y_train: Any, y_test: Any) -> Any:
    """Positions of the test rows whose class is among the training rows; None if all are, or of labels."""
    trained, tested = (np.asarray(to_host(y) if is_xp_array(y) else y) for y in (y_train, y_test))
    known = np.isin(tested, np.unique(trained))
    return None if tested.ndim > 1 or known.all() else np.flatnonzero(known)


def split_pipelines(estimator: Any) -> tuple[list[Pipeline], Any]:
    """The pipelines around the last step of an estimator, from outside to inside, and that step."""
    pipelines = []
    while isinstance(estimator, Pipeline) and estimator.steps:
        pipelines.append(estimator)
        estimator = estimator.steps[-1][1]
    return pipelines, estimator
