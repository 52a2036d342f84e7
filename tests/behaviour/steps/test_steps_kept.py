"""Steps that a family has fitted serve the fits that it leaves: nothing that was computed is thrown away."""

from __future__ import annotations

from collections import Counter

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from manyfit.folds import Unsupported
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.strategies import _fold_families as _family_tasks
from tests._covering import covering
from tests._same_results import LABELS, X_CLASS, X, Y, both
from tests._search_fixtures import RANDOM_LASSO

FITS: Counter[str] = Counter()
WORDS = ["fold", "split", "scorer", "worker", "kernel", "ridge", "lasso", "tree", "seed", "loss"]


class CountedTfidf(TfidfVectorizer):
    def fit_transform(self, raw_documents, y=None):
        FITS["tfidf"] += 1
        return super().fit_transform(raw_documents, y)


class CountedLogistic(LogisticRegression):
    """No family serves it."""

    def fit(self, X, y):
        FITS["last"] += 1
        return super().fit(X, y)


class Step(TransformerMixin, BaseEstimator):
    """Counts its fits, and makes of X what it is told to make."""

    def __init__(self, makes="same", at=0):
        self.makes = makes
        self.at = at

    def fit(self, X, y=None):
        FITS["step"] += 1
        if self.makes == "error":
            raise ArithmeticError("the step fails")
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        X = np.array(X)
        if self.makes == "nan":
            X[0, 0] = np.nan
        if self.makes == "wide":
            return np.hstack([X + j for j in range(60)])
        if self.makes == "sparse":
            return csr_matrix(X)
        return X.astype(object) if self.makes == "objects" else X


@pytest.fixture(autouse=True)
def _count_from_zero():
    FITS.clear()


@pytest.fixture
def dear(monkeypatch):
    """Sharing never pays."""

    def refuse(*_):
        raise Unsupported("sharing would take longer here")

    monkeypatch.setattr(_family_tasks, "require_cheaper", refuse)


def texts(n=60):
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, 6)) for _ in range(n)], rng.integers(0, 2, n)


@pytest.mark.invariant("A step that was fitted to decide about sharing is not fitted again")
@pytest.mark.parametrize(
    ("last", "container"),
    covering(
        [LinearSVC(), LinearSVC(random_state=0), LogisticRegression()],
        [list, lambda X: np.array(X, dtype=object)],
        strength=1,
    ),
)
def test_a_vectorizer_is_fitted_once_a_split_where_sharing_does_not_pay(last, container, dear):
    """Also where the last step draws, so that the fits keep scikit-learn's order."""
    texts_, y = texts()
    name = type(last).__name__.lower()
    search = both(make_pipeline(CountedTfidf(), last), {f"{name}__C": [0.1, 1.0, 10.0]}, container(texts_), y,
                  cv=4)  # fmt: skip
    assert search.report_.left_to_sklearn == {"sharing would take longer here": 12}
    assert FITS["tfidf"] == (12 + 1) + (4 + 1)  # scikit-learn's, and ours
    assert search.report_.transformer_fits == 4


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("makes", "last", "options"),
    [
        ("sparse", Ridge(), {}),
        ("objects", LogisticRegression(), {}),
        ("wide", Ridge(), {"memory_limit": "1.2MB"}),
        ("wide", Ridge(), {"sharing": "auto"}),
    ],
)
@pytest.mark.parametrize("order_is_kept", [False, True])
def test_a_step_is_fitted_once_a_split_whatever_its_output(makes, last, options, order_is_kept):
    name = "alpha" if isinstance(last, Ridge) else "C"
    y = Y if isinstance(last, Ridge) else LABELS
    grid = {f"{type(last).__name__.lower()}__{name}": [0.1, 1.0, 10.0]}
    error_score = "raise" if order_is_kept else np.nan
    search = GridSearchCV(
        make_pipeline(Step(makes), last), grid, cv=3, refit=False, error_score=error_score, **options
    )
    search.fit(X if y is Y else X_CLASS, y)
    report = search.report_
    assert report.fits_done == sum(report.left_to_sklearn.values()) == 9, report
    assert FITS["step"] == 3


def test_steps_of_several_groups_are_fitted_once_a_split():
    """A family that answers, one that leaves its settings, and settings that no family serves."""
    grid = [
        {"step__at": [0], "last": [Ridge()], "last__alpha": [0.1, 1.0]},
        {"step__at": [0], "last": [Ridge(fit_intercept=False)], "last__alpha": [0.1, 1.0]},
        {"step__at": [0, 1], "last": [Ridge(solver="lsqr")], "last__alpha": [0.1, 1.0]},
    ]
    pipeline = make_pipeline(Step(), Ridge())
    pipeline.steps = [("step", Step()), ("last", Ridge())]
    search = GridSearchCV(pipeline, grid, cv=3, refit=False)
    plan = search.plan(X, Y)
    report = search.fit(X, Y).report_
    assert FITS["step"] == report.transformer_fits == plan.transformer_fits == 2 * 3


@pytest.mark.parametrize("makes", ["nan", "error"])
@pytest.mark.parametrize("last", [Ridge(), RANDOM_LASSO])
def test_what_fails_is_tried_once_a_split_before_scikit_learn_fits_it(makes, last):
    """Fits that fail are scikit-learn's own, which fit their steps for each setting and split."""
    grid = {f"{type(last).__name__.lower()}__alpha": [0.1, 1.0, 10.0]}
    search = GridSearchCV(make_pipeline(Step(makes), last), grid, cv=3, refit=False)
    with pytest.raises(ValueError, match="All the 9 fits failed"):
        search.fit(X, Y)
    assert FITS["step"] == 3 + 9


def test_joblib_goes_on_in_the_same_task(dear):
    texts_, y = texts()
    pipeline, grid = make_pipeline(CountedTfidf(), LinearSVC()), {"linearsvc__C": [0.1, 1.0, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=4, n_jobs=2, refit=False)
    with joblib.parallel_config("threading"):
        report = search.fit(texts_, y).report_
    assert FITS["tfidf"] == report.transformer_fits == 4 and report.fits_done == 12


def test_where_a_last_step_draws_folds_of_texts_are_kept():
    texts_, y = texts()
    pipeline = make_pipeline(CountedTfidf(), RandomForestClassifier(3))
    search = GridSearchCV(pipeline, {"randomforestclassifier__max_depth": [1, 2, 3]}, cv=4, refit=False)
    assert search.plan(texts_, y).transformer_fits == 4
    search.fit(texts_, y)
    assert FITS["tfidf"] == search.report_.transformer_fits == 4


def test_where_not_all_folds_can_be_kept_those_that_can_are():
    """In scikit-learn's order each fold is read once a setting: all but the last place keep theirs."""
    search = GridSearchCV(
        make_pipeline(Step(), RandomForestClassifier(2)),
        {"randomforestclassifier__max_depth": [1, 2, 3, 4]},
        cv=5,
        refit=False,
        memory_limit=4 * 3 * X_CLASS.nbytes,  # a quarter holds 3 folds
    )
    plan = search.plan(X_CLASS, LABELS)
    report = search.fit(X_CLASS, LABELS).report_
    assert FITS["step"] == report.transformer_fits == plan.transformer_fits == 2 + 3 * 4
