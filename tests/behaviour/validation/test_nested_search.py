"""Cross-validation of a grid search against scikit-learn's, which fits each search by itself."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.compose import make_column_transformer
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV as Reference
from sklearn.model_selection import GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from manyfit.model_selection import GridSearchCV, cross_val_score, cross_validate
from manyfit.model_selection.validation import _cross_validate, _nested_search


@pytest.fixture
def answers(monkeypatch):
    """The report of each nested search, None where it was fitted."""
    found, answer = [], _nested_search.answer_nested_search

    def noted(job):
        answered = answer(job)
        found.append(answered and answered[2])
        return answered

    monkeypatch.setattr(_cross_validate, "answer_nested_search", noted)
    return found


def _data():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(75, 4)) * [1.0, 10.0, 0.1, 3.0] + 2.0
    return X, X[:, 0] + rng.normal(size=75)


GRID = {"alpha": [1e-2, 1.0, 30.0, 1e3]}


@pytest.mark.parametrize(
    ("search", "outer", "passes"),
    [
        ({}, {}, 1.0),
        ({"cv": KFold(3)}, {"cv": 4, "scoring": "neg_mean_squared_error"}, 1.0),
        ({"scoring": "neg_root_mean_squared_error"}, {"cv": KFold(3, shuffle=True, random_state=0)}, 3.0),
    ],
)
def test_scores_are_scikit_learns(search, outer, passes, answers):
    X, y = _data()
    theirs = model_selection.cross_val_score(Reference(Ridge(), GRID, **search), X, y, **outer)
    for cls in (GridSearchCV, Reference):
        ours = cross_val_score(cls(Ridge(), GRID, **search), X, y, **outer)
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    assert [report.passes for report in answers] == [passes] * 2
    assert all(report.fits_done == 0 for report in answers)


def test_steps_and_repeated_rows(answers):
    X, y = _data()
    pairs = [(np.r_[0:50, 0:10], np.arange(50, 75)), (np.arange(74, 20, -1), np.arange(20))]
    model, grid = make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": GRID["alpha"]}
    theirs = model_selection.cross_validate(Reference(model, grid, cv=3), X, y, cv=pairs)
    ours = cross_validate(GridSearchCV(model, grid, cv=3), X, y, cv=pairs)
    assert list(ours) == list(theirs)
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-10)
    assert answers[0].fits_shared > 0


def test_frames_of_numbers_and_of_categories(answers):
    X, y = _data()
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(75)[::-1])
    theirs = model_selection.cross_val_score(Reference(Ridge(), GRID), frame, pd.Series(y), cv=3)
    np.testing.assert_allclose(
        cross_val_score(GridSearchCV(Ridge(), GRID), frame, pd.Series(y), cv=3), theirs, rtol=1e-10
    )
    frame["e"] = np.resize(["x", "y", "z"], 75)
    encoder = make_column_transformer((OneHotEncoder(), ["e"]), remainder=StandardScaler())
    model, grid = make_pipeline(encoder, Ridge()), {"ridge__alpha": GRID["alpha"]}
    theirs = model_selection.cross_val_score(Reference(model, grid, cv=2), frame, y, cv=3)
    ours = cross_val_score(GridSearchCV(model, grid, cv=2), frame, y, cv=3)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert [report.fits_done for report in answers] == [0, 0]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("search", "options"),
    [
        (Reference(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2), {}),
        (Reference(Ridge(), GRID, refit=lambda found: 0), {}),
        (GridSearchCV(Ridge(), GRID, sharing="none"), {}),
        (Reference(Ridge(), GRID), {"params": {"sample_weight": np.arange(1.0, 76.0)}}),
        (
            Reference(Ridge(), GRID, cv=iter(list(KFold(3).split(np.zeros(37))))),
            {"cv": [(range(37), range(40, 75))]},
        ),
    ],
)
def test_other_searches_are_fitted(search, options, answers):
    X, y = _data()
    y = (y > 2.0).astype(int) if isinstance(search.estimator, LogisticRegression) else y
    options = {"cv": 2, **options}
    fixed = search.get_params(deep=False)
    if hasattr(fixed["cv"], "__next__"):
        splits = list(fixed["cv"])
        search, reference = (Reference(Ridge(), GRID, cv=splits) for _ in range(2))
        search.cv = iter(splits)
    else:
        names = Reference(Ridge(), {}).get_params(deep=False)
        reference = Reference(**{name: fixed[name] for name in names})
    theirs = model_selection.cross_val_score(reference, X, y, **options)
    ours = cross_val_score(search, X, y, **options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert answers == [None]


def test_warnings_are_those_of_the_fits(answers):
    X, y = _data()
    with pytest.warns(UndefinedMetricWarning) as caught:
        cross_val_score(GridSearchCV(Ridge(), GRID, cv=2), X, y, cv=[(np.arange(70), [71])])
    assert len(caught) == 1
    assert answers == [None]


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [(RidgeClassifier(), {"alpha": [1.0, 10.0]}), (GaussianNB(), {"var_smoothing": [1e-3, 1e-1]})],
    ids=["shared", "fitted"],
)
def test_splits_warn_as_often_as_in_scikit_learn(estimator, grid, answers):
    X, y = _data()
    labels = (y > 2.0).astype(int)
    labels[:3] = 2  # fewer rows than inner splits
    found = []
    for function in (model_selection.cross_validate, cross_validate):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(Reference(estimator, grid), X, labels, cv=KFold(3, shuffle=True, random_state=0))
        found.append([str(one.message) for one in caught])
    assert len(found[0]) == 2  # one outer training part has no such row
    assert found[0] == found[1]
    assert (answers == [None]) == isinstance(estimator, GaussianNB)


def test_groups_of_the_outer_splits(answers):
    X, y = _data()
    options = {"cv": GroupKFold(3), "groups": np.arange(75) // 5}
    theirs = model_selection.cross_val_score(Reference(Ridge(), GRID), X, y, **options)
    np.testing.assert_allclose(
        cross_val_score(GridSearchCV(Ridge(), GRID), X, y, **options), theirs, rtol=1e-10
    )


def test_a_choice_that_rounding_decides_is_fitted_unless_it_changes_no_score():
    means = np.array([0.5, 0.5 + 1e-10, 0.1])
    assert _nested_search._score_of_choice(means, np.array([0.7, 0.7 + 1e-12, 0.2])) == 0.7 + 1e-12
    with pytest.raises(_nested_search.Unsupported, match="rounding"):
        _nested_search._score_of_choice(means, np.array([0.6, 0.7, 0.2]))
