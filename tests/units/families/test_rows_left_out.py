"""Neighbours of each row among all others: one query of all rows gives what a fit for each row gives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from manyfit.estimators import family_of
from manyfit.families.neighbours._left_out import RowsLeftOut
from manyfit.folds import Unsupported
from manyfit.model_selection import GridSearchCV

rng = np.random.default_rng(0)
N = 24
NUMBERS = rng.normal(size=(N, 20))
WHOLE = rng.integers(0, 3, size=(N, 20)).astype(float)
TWICE = np.repeat(NUMBERS[: N // 2], 2, axis=0)
LABELS = np.array(["a", "b", "c"])[rng.permutation(np.arange(N) % 3)]
TARGETS = rng.normal(size=N)
VOTES = [{"n_neighbors": k, "weights": w} for k in (1, 2, 4, 23) for w in ("uniform", "distance")]


def assert_same(estimator, X, y):
    family = family_of(type(estimator))
    answers = family.leave_rows_out(estimator, VOTES, X, y)
    methods = ("predict", "predict_proba") if is_classifier(estimator) else ("predict",)
    assert not answers.refused
    found = answers.respond("test", None)
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        for j, setting in enumerate(VOTES):
            fitted = clone(estimator).set_params(**setting).fit(X[rest], y[rest])
            for method in methods:
                expected = getattr(fitted, method)(X[i : i + 1])[0]
                if method == "predict" and is_classifier(estimator):
                    assert found[method][j][i] == expected
                else:
                    np.testing.assert_allclose(found[method][j][i], expected, rtol=0, atol=1e-12)


FORMS = {
    "numbers": (NUMBERS, {}),
    "ties of whole numbers": (WHOLE, {}),
    "rows twice": (TWICE, {}),
    "far from zero": (NUMBERS + 1e6, {}),
    "a tree": (WHOLE[:, :4] / 3, {}),
    "balls": (TWICE[:, :3], {"algorithm": "ball_tree", "leaf_size": 2}),
    "absolute values": (WHOLE / 7, {"p": 1}),
    "pairs": (NUMBERS, {"p": 1, "algorithm": "brute"}),
    "all equal": (np.ones((N, 2)), {}),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize("form", FORMS)
def test_labels_are_those_of_a_fit_for_each_row(form):
    X, params = FORMS[form]
    codes = np.unique(LABELS, return_inverse=True)[1]  # scikit-learn 1.7 fails with texts and p=1
    assert_same(KNeighborsClassifier(**params), X, codes if "p" in params else LABELS)


@pytest.mark.cases(2)
@pytest.mark.parametrize("form", ["numbers", "rows twice", "balls"])
def test_means_are_those_of_a_fit_for_each_row(form):
    X, params = FORMS[form]
    assert_same(KNeighborsRegressor(**params), X, TARGETS)


@pytest.mark.parametrize(("form", "asked"), [("numbers", False), ("rows twice", True)])
def test_only_rows_that_rounding_decides_are_asked_again(form, asked, monkeypatch):
    rows = []
    monkeypatch.setattr(RowsLeftOut, "response", lambda self, row, *_: rows.append(row) or 0.0)
    X, y = FORMS[form][0], TARGETS
    answers = family_of(KNeighborsRegressor).leave_rows_out(KNeighborsRegressor(), VOTES[:6], X, y)
    assert answers.fits_made == 1
    answers.respond("test", None)["predict"]
    assert bool(rows) is asked


@pytest.mark.parametrize(
    ("estimator", "y", "why"),
    [
        (KNeighborsClassifier(metric="cosine"), LABELS, "not bounded"),
        (KNeighborsClassifier(p=9), LABELS, "between 1 and 4"),
        (KNeighborsClassifier(), np.arange(N), "a class has one row"),
    ],
)
def test_what_is_answered_fold_by_fold(estimator, y, why):
    answer = family_of(type(estimator)).leave_rows_out
    with pytest.raises(Unsupported, match=why):
        answer(estimator, VOTES, NUMBERS, y).respond("test", None)


def searches(estimator, X, y, most=40, **params):
    grid = {"n_neighbors": [1, 4, most], "weights": ["uniform", "distance"]}
    own = GridSearchCV(estimator, grid, **params)
    expected, texts = SklearnSearch(estimator, grid, **params), []
    for search in (own, expected):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            search.fit(X, y)
        texts.append({str(one.message).splitlines()[0] for one in seen})
    for name, values in expected.cv_results_.items():
        if "score" in name and "time" not in name:
            np.testing.assert_allclose(own.cv_results_[name], values, rtol=0, atol=1e-12, err_msg=name)
    assert texts[0] == texts[1]
    return own.report_


@pytest.mark.parametrize("cv", [LeaveOneOut(), KFold(N, shuffle=True, random_state=0)], ids=str)
def test_a_search_that_leaves_out_each_row_makes_one_fit(cv):
    report = searches(KNeighborsClassifier(), NUMBERS, LABELS, cv=cv)
    assert report.groups[0]["kind"] == "rows left out"
    # Where n_neighbors is too large, scikit-learn fails for each row.
    assert report.fits_done == 2 * N + 1


def test_scores_that_warn_or_fail_are_those_of_scikit_learn():
    cv, some = LeaveOneOut(), slice(12)
    scoring = ["accuracy", "neg_log_loss", "f1_macro"]
    searches(KNeighborsClassifier(), WHOLE[some], LABELS[some], 6, cv=cv, scoring=scoring, refit="accuracy")
    scoring = ["neg_mean_squared_error", "neg_median_absolute_error", "r2"]
    searches(KNeighborsRegressor(), NUMBERS[some], TARGETS[some], 6, cv=cv, scoring=scoring, refit=False)
