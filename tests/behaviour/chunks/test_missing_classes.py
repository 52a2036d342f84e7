"""Training parts that lack a class: the fit has the classes that it sees, as scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks import _sparse
from tests.behaviour.chunks._files import Dataset, limit_for
from tests.behaviour.chunks._searches import N, X

# The rows of the last class are those of the first fold, whose training part lacks it.
SIZE = N // 3
THREE = np.where(np.arange(N) <= SIZE, "third", np.where(X[:, 0] > X[:, 0].mean(), "second", "first"))
LOGISTIC = LogisticRegression(tol=1e-6, max_iter=10_000)
OPTIONS = {"cv": KFold(3), "refit": False, "return_train_score": True, "scoring": ["accuracy", "f1_macro"]}


def require_equal(search, expected, atol=0.0):
    names = [name for name in expected.cv_results_ if name.startswith("split")]
    assert names
    for name in names:
        found, wanted = search.cv_results_[name], expected.cv_results_[name]
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=atol, err_msg=name)


@pytest.mark.parametrize(
    ("model", "atol"),
    [
        (LOGISTIC, 1e-3),
        (
            make_pipeline(StandardScaler(), clone(LOGISTIC).set_params(class_weight="balanced")),
            1e-3,
        ),
        (LinearSVC(dual=False, tol=1e-6), 1e-3),
        (OneVsRestClassifier(LOGISTIC), 1e-3),
        (make_pipeline(StandardScaler(), RidgeClassifier()), 0.0),
        (GaussianNB(), 0.0),
        (LinearDiscriminantAnalysis(), 0.0),
    ],
    ids=["logistic", "weighted", "svm", "one against the rest", "ridge", "GaussianNB", "LDA"],
)
@pytest.mark.filterwarnings("ignore:Recall is ill-defined", "ignore:Precision is ill-defined")
def test_a_class_that_a_training_part_lacks(model, atol):
    search = GridSearchCV(model, {}, memory_limit=limit_for(X, 90), **OPTIONS).fit(Dataset(X), THREE)
    assert search.report_.fits_done == 0
    require_equal(search, SklearnSearch(model, {}, **OPTIONS).fit(X, THREE), atol)


def test_probabilities_of_the_classes_that_it_has():
    model = LOGISTIC
    splits = [*KFold(3).split(X)][:1] + [*KFold(3, shuffle=True, random_state=0).split(X)][:1]
    options = OPTIONS | {"cv": splits, "scoring": ["neg_log_loss", "accuracy"]}
    with pytest.warns(UserWarning, match="Scoring failed"), pytest.warns(UserWarning, match="non-finite"):
        expected = SklearnSearch(model, {"C": [0.1, 1.0]}, **options).fit(X, THREE)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, memory_limit=limit_for(X, 90), **options)
    with pytest.warns(UserWarning, match="Scoring failed"), pytest.warns(UserWarning, match="non-finite"):
        search.fit(Dataset(X), THREE)
    assert search.report_.fits_done == 0
    require_equal(search, expected, 1e-5)


@pytest.mark.parametrize("model", [LOGISTIC, LinearSVC(dual=False, tol=1e-6)])
def test_one_class_fails_the_fit(model):
    y = np.where(np.arange(N) <= SIZE, X[:, 0] > 3.0, True)
    searches = (
        SklearnSearch(model, {}, **OPTIONS),
        GridSearchCV(model, {}, memory_limit=limit_for(X, 90), **OPTIONS),
    )
    for search, given, why in zip(searches, (X, Dataset(X)), ("1 fits failed", "one class"), strict=True):
        with pytest.warns(FitFailedWarning, match=why), pytest.warns(UserWarning, match="non-finite"):
            search.fit(given, y)
    require_equal(searches[1], searches[0], 1e-3)


def test_sparse_rows():
    y = np.sort(_sparse.Y)[::-1]
    for model in (LinearSVC(dual=False, C=0.1), MultinomialNB()):
        search = GridSearchCV(model, {}, memory_limit=_sparse.LIMIT, **OPTIONS)
        search.fit(_sparse.blocks(_sparse.COUNTS, y=y))
        assert search.report_.fits_done == 0
        require_equal(search, SklearnSearch(model, {}, **OPTIONS).fit(_sparse.COUNTS, y), 1e-3)
