"""Searches by sums within classes on an X in chunks have the scores of arrays in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.behaviour.chunks._files import Dataset, given_as, limit_for

rng = np.random.default_rng(0)
N, P = 701, 6
LABELS = rng.choice(["a", "b", "c"], size=N, p=[0.5, 0.3, 0.2])
X = rng.normal(size=(N, P)) + (LABELS == "b")[:, None] * [1.0, 0.0, 2.0, 0.0, 0.5, 0.0] + 100.0
MODELS = [
    (GaussianNB(), {"var_smoothing": [1e-9, 1e-2, 1.0]}),
    (GaussianNB(), {"var_smoothing": [1e-3]}),
    (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": [0.0, 0.3, 0.9]}),
]
LIMIT = N * P * 8 // 2


@pytest.mark.parametrize(
    ("model", "grid", "rows", "shuffle"), covering(MODELS, [1, 83, 170], [False, True], strength=1)
)
def test_scores_are_those_of_an_array(model, grid, rows, shuffle):
    cv = StratifiedKFold(5, shuffle=shuffle, random_state=0 if shuffle else None)
    search = GridSearchCV(model, grid, cv=cv, refit=False, memory_limit=LIMIT)
    search.fit(Dataset(X, (rows, P)), LABELS)
    expected = SklearnSearch(model, grid, cv=cv, refit=False).fit(X, LABELS)
    assert search.report_.fits_done == 0
    # Memory holds the predictions of one setting at a time.
    (values,) = grid.values()
    assert 2.0 <= search.report_.passes <= 1.0 + 5 * len(values)
    scores = (one.cv_results_["mean_test_score"] for one in (search, expected))
    np.testing.assert_allclose(*scores, rtol=1e-12)


@pytest.mark.parametrize("kind", ["zarr", "dask"])
def test_probabilities(kind, tmp_path):
    options = {"cv": KFold(5), "scoring": "neg_log_loss", "return_train_score": False, "refit": False}
    search = GridSearchCV(*MODELS[0], memory_limit=LIMIT, **options)
    search.fit(given_as(kind, X, 90, tmp_path), LABELS)
    expected = SklearnSearch(*MODELS[0], **options).fit(X, LABELS)
    scores = (one.cv_results_["mean_test_score"] for one in (search, expected))
    np.testing.assert_allclose(*scores, rtol=1e-10)
    # The fit in two passes adds up the rows one after the other, as NumPy does in memory.
    in_memory = GridSearchCV(*MODELS[0], **options).fit(X, LABELS)
    scores = (one.cv_results_["mean_test_score"] for one in (search, in_memory))
    np.testing.assert_array_equal(*scores)


WEIGHTS = rng.uniform(0.0, 2.0, size=N) * (rng.uniform(size=N) < 0.8)


@pytest.mark.parametrize(("scoring", "shuffle"), [("accuracy", True), ("neg_log_loss", False)])
def test_sample_weights(scoring, shuffle):
    cv = KFold(3, shuffle=shuffle, random_state=0 if shuffle else None)
    options = {"cv": cv, "scoring": scoring, "refit": False}
    search = GridSearchCV(*MODELS[0], memory_limit=LIMIT, **options)
    search.fit(Dataset(X, (90, P)), LABELS, sample_weight=WEIGHTS)
    expected = SklearnSearch(*MODELS[0], **options).fit(X, LABELS, sample_weight=WEIGHTS)
    assert search.report_.fits_shared == 9
    scores = (one.cv_results_["mean_test_score"] for one in (search, expected))
    # Probabilities are read from the sums in scikit-learn's own order.
    np.testing.assert_array_equal(*scores)


def test_weights_that_are_refused():
    options = {"refit": False, "memory_limit": LIMIT}
    with pytest.raises(TypeError, match="LinearDiscriminantAnalysis.fit takes no sample_weight"):
        GridSearchCV(*MODELS[2], **options).fit(Dataset(X, (90, P)), LABELS, sample_weight=WEIGHTS)
    none = np.where(LABELS == "c", 0.0, 1.0)
    with pytest.raises(TypeError, match="a class has no weight in the training rows"):
        GridSearchCV(*MODELS[0], **options).fit(Dataset(X, (90, P)), LABELS, sample_weight=none)


@pytest.mark.parametrize(("model", "grid"), [MODELS[0], MODELS[2]], ids=["GaussianNB", "LDA"])
def test_nan_is_named_by_its_row(model, grid):
    values = X.copy()
    values[407, 2] = np.nan
    search = GridSearchCV(model, grid, refit=False, memory_limit=LIMIT)
    with pytest.raises(ValueError, match="Input X contains NaN or infinity, first in row 407 of 701"):
        search.fit(Dataset(values, (50, P)), LABELS)


def test_predictions_that_do_not_fit_are_refused_before_anything_is_read():
    file = Dataset(X, (5, P))
    search = GridSearchCV(*MODELS[0], refit=False, memory_limit=limit_for(X, 5), cv=2)
    message = (
        "the predictions of a fold would need .*, more than memory_limit. .* Set a larger memory_limit, make"
    )
    with pytest.raises(TypeError, match=message):
        search.fit(file, LABELS)
    assert not file.reads


@pytest.mark.parametrize(
    ("model", "options", "refused"),
    [
        (MODELS[0], {}, False),
        (MODELS[0], {"scoring": "neg_log_loss"}, True),  # a number for each class
        (MODELS[0], {"return_train_score": True}, True),
        (MODELS[2], {}, True),
    ],
    ids=["labels", "probabilities", "training scores", "LDA"],
)
def test_predictions_are_counted_with_all_that_scores_read(model, options, refused):
    file, n_test = Dataset(X, (5, P)), -(-N // 4)
    limit = 2 * 2 * 8 * n_test if model is MODELS[0] else 7_500  # which the sums of the classes fit
    search = GridSearchCV(*model, refit=False, cv=4, memory_limit=limit, **options)
    if refused:
        with pytest.raises(TypeError, match="the predictions of a fold would need"):
            search.fit(file, LABELS)
        assert not file.reads
    else:
        assert search.fit(file, LABELS).report_.fits_shared == 12
