"""Incremental searches over an X in chunks: blocks train, and held-out rows are scored in blocks."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import KFold, ShuffleSplit

from manyfit.folds import Blocks
from manyfit.model_selection import HyperbandSearchCV, IncrementalSearchCV
from tests._covering import spread
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y
from tests.behaviour.adaptive.test_incremental import ALPHAS, SPACE, Curve

CHUNK = 25


def in_chunks(X):
    return da.from_array(X, chunks=(CHUNK, X.shape[1]))


def trained(model, calls, rows, X, y, weights=None, **given):
    """A model after some calls on the blocks of some rows."""
    model = clone(model)
    for _ in range(calls):
        for start in range(0, len(X), CHUNK):
            own = np.sort(rows[(rows >= start) & (rows < start + CHUNK)])
            if not len(own):
                continue
            if weights is not None:
                given["sample_weight"] = weights[own]
            model.partial_fit(X[own], y[own], **given)
    return model


@pytest.mark.parametrize("scoring", spread([None, "roc_auc_ovr", "neg_log_loss"], 2))
def test_blocks_train_and_are_scored(scoring):
    sgd, classes = SGDClassifier(loss="log_loss", random_state=0), np.unique(LABELS)
    search = IncrementalSearchCV(
        sgd, ALPHAS, "grid", max_iter=2, random_state=0, scoring=scoring, memory_limit=3000
    ).fit(in_chunks(X_CLASS), LABELS)
    assert search.report_.bytes_read > 0
    train, test = next(ShuffleSplit(1, test_size=0.2, random_state=0).split(X_CLASS))
    for one in search.history_:
        model = trained(
            sgd.set_params(**one["params"]), one["partial_fit_calls"], train, X_CLASS, LABELS, classes=classes
        )
        scorer = get_scorer(scoring) if scoring else lambda model, X, y: model.score(X, y)
        test = np.sort(test)
        assert one["score"] == pytest.approx(scorer(model, X_CLASS[test], LABELS[test]), rel=1e-12)


def test_cross_validation_checkpoint_and_weights_in_chunks(tmp_path):
    sgd = SGDRegressor(random_state=0)
    options = {"max_iter": 3, "random_state": 0, "cv": KFold(2), "memory_limit": 3000}
    search = HyperbandSearchCV(sgd, SPACE, checkpoint=tmp_path / "c", **options)
    search.fit(in_chunks(X), Y, sample_weight=WEIGHTS)
    folds = list(KFold(2).split(X))
    for records in search.model_history_.values():
        one = records[-1]
        for score, (train, test) in zip(one["split_scores"], folds, strict=True):
            model = trained(
                clone(sgd).set_params(**one["params"]), one["partial_fit_calls"], train, X, Y, WEIGHTS
            )
            assert score == pytest.approx(model.score(X[test], Y[test]), rel=1e-12)
    calls = search.cv_results_["partial_fit_calls"][search.best_index_]
    whole = trained(clone(sgd).set_params(**search.best_params_), calls, np.arange(len(X)), X, Y, WEIGHTS)
    np.testing.assert_array_equal(search.best_estimator_.coef_, whole.coef_)
    again = HyperbandSearchCV(sgd, SPACE, checkpoint=tmp_path / "c", **options)
    again.fit(in_chunks(X), Y, sample_weight=WEIGHTS)
    assert again.report_.fits_done == 0 and again.best_score_ == search.best_score_


def test_iterables_of_blocks_and_threads():
    def read():
        for start in range(0, len(X), CHUNK):
            yield X[start : start + CHUNK], Y[start : start + CHUNK]

    options = {"max_iter": 2, "random_state": 0, "memory_limit": 3000}
    search = IncrementalSearchCV(SGDRegressor(random_state=0), ALPHAS, "grid", n_jobs=2, **options)
    search.fit(Blocks(read))
    other = IncrementalSearchCV(SGDRegressor(random_state=0), ALPHAS, "grid", **options).fit(in_chunks(X), Y)
    assert search.cv_results_["test_score"].tolist() == other.cv_results_["test_score"].tolist()


def test_what_cannot_be_done_in_chunks():
    options = {"max_iter": 2, "random_state": 0, "memory_limit": 3000}
    with pytest.raises(TypeError, match="held-out rows are scored by their predictions"):
        IncrementalSearchCV(Curve(), {"slope": [1.0]}, "grid", **options).fit(in_chunks(X), Y)
    import lightgbm

    with pytest.raises(TypeError, match="LGBMRegressor trains on all rows at once"):
        IncrementalSearchCV(lightgbm.LGBMRegressor(), {"num_leaves": [4]}, "grid", **options).fit(
            in_chunks(X), Y
        )
    with pytest.raises(TypeError, match="does not have"):
        IncrementalSearchCV(LogisticRegression(), {"C": [1.0]}, "grid", **options).fit(in_chunks(X), Y)


class Breaks(SGDRegressor):
    """Fails in its third call."""

    def partial_fit(self, X, y, sample_weight=None):
        self.calls_ = getattr(self, "calls_", 0) + 1
        if self.alpha == 1.0 and self.calls_ == 3:
            raise ValueError("it breaks")
        return super().partial_fit(X, y, sample_weight)


class Fails(SGDRegressor):
    """Predicts with some of its settings only, and a constant with another."""

    def predict(self, X):
        if self.alpha == 0.1:
            raise ValueError("no prediction")
        return super().predict(X) * (self.alpha != 0.01)


def _no_score_of_constants(y, predicted):
    if not np.ptp(predicted):
        raise ValueError("a constant")
    return -np.mean((y - predicted) ** 2)


@pytest.mark.parametrize("error_score", [np.nan, -7.0, "raise"])
def test_scores_that_fail_are_those_of_arrays(error_score):
    options = {"max_iter": 2, "error_score": error_score, "cv": KFold(2), "memory_limit": 3000}
    options["scoring"] = make_scorer(_no_score_of_constants)
    searches = [IncrementalSearchCV(Fails(random_state=0), ALPHAS, "grid", **options) for _ in range(2)]
    if error_score == "raise":
        for search, given in zip(searches, (X, in_chunks(X)), strict=True):
            with pytest.raises(ValueError, match="no prediction|a constant"):
                search.fit(given, Y)
        return
    for search, given in zip(searches, (X, in_chunks(X)), strict=True):
        with pytest.warns(UserWarning, match="Scoring failed") as warned:
            search.fit(given, Y)
        texts = [str(one.message) for one in warned]
        assert any("no prediction" in one for one in texts) and any("a constant" in one for one in texts)
    whole, chunked = (search.cv_results_ for search in searches)
    np.testing.assert_array_equal(chunked["partial_fit_calls"], whole["partial_fit_calls"])
    for one in (whole, chunked):
        np.testing.assert_array_equal(one["test_score"][2:4], error_score)
        assert not np.isnan(one["test_score"][[0, 1, 4]]).any()


def test_a_model_that_fails_in_chunks_ends():
    search = IncrementalSearchCV(
        Breaks(random_state=0), ALPHAS, "grid", max_iter=3, random_state=0, memory_limit=3000
    )
    with pytest.warns(Warning, match="it breaks"):
        search.fit(in_chunks(X), Y)
    failed = np.isnan(search.cv_results_["test_score"])
    assert failed.tolist() == [False] * 4 + [True]
    assert search.cv_results_["partial_fit_calls"].tolist() == [3] * 4 + [1]
    with pytest.raises(ValueError, match="it breaks"):
        search.set_params(error_score="raise").fit(in_chunks(X), Y)
