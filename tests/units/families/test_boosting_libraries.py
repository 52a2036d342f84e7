"""XGBoost and LightGBM: the first iterations of the largest fit are the smaller fits, to the bit."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from xgboost import XGBClassifier, XGBRegressor

from manyfit.estimators import family_of
from manyfit.folds import FoldArrays, SingleFold, Unsupported
from manyfit.model_selection import GridSearchCV
from tests._same_results import both

rng = np.random.default_rng(0)
N, TRAIN = 150, 100
CODES = rng.integers(0, 3, N)
X = rng.normal(size=(N, 5)) + 0.5 * CODES[:, None]
NUMBERS = X[:, 0] + 0.1 * rng.normal(size=N)
X[::9, 2] = np.nan
WEIGHTS = rng.random(N) + 0.1
COUNTS = [3, 1, 8]
QUIET = {"n_jobs": 1, "verbose": -1, "min_child_samples": 3}
MODELS = [
    XGBClassifier(n_jobs=1),
    XGBClassifier(n_jobs=1, tree_method="exact", subsample=0.5, colsample_bytree=0.5, random_state=3),
    XGBRegressor(n_jobs=1, grow_policy="lossguide", max_leaves=4, num_parallel_tree=2, subsample=0.7),
    LGBMClassifier(**QUIET),
    LGBMClassifier(**QUIET, data_sample_strategy="goss", class_weight="balanced", random_state=1),
    LGBMRegressor(**QUIET, subsample=0.5, subsample_freq=1, extra_trees=True),
    LGBMRegressor(**QUIET, boosting_type="rf", subsample=0.5, subsample_freq=1),
]


def target(model):
    return CODES if is_classifier(model) else NUMBERS


@pytest.mark.cases(5)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("weights", [None, WEIGHTS[:TRAIN]], ids=["plain", "weighted"])
def test_responses_are_equal_to_the_bit(model, weights):
    y, settings = target(model), [{"n_estimators": n} for n in COUNTS]
    family = family_of(type(model))
    family.check(model, settings)
    fold = FoldArrays(X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:], weights, X[:TRAIN], y[:TRAIN], y[TRAIN:])
    (answers,) = family.fit_many(model, settings, SingleFold(fold))
    fit_params = {} if weights is None else {"sample_weight": weights}
    assert answers.fits_made == 1
    for j, setting in enumerate(settings):
        alone = clone(model).set_params(**setting).fit(X[:TRAIN], y[:TRAIN], **fit_params)
        for role in ("train", "test"):
            for method, found in answers.respond(role, fold).items():
                expected = getattr(alone, method)(fold.rows(role))
                np.testing.assert_array_equal(found[j], expected, err_msg=method)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[3], MODELS[5]], ids=lambda model: type(model).__name__)
def test_searches_make_one_fit_a_split(model):
    grid = {"n_estimators": [2, 5], "learning_rate": [0.1, 0.5]}
    search = both(model, grid, X, target(model), cv=3)
    assert (search.report_.fits_done, search.report_.fits_shared) == (6, 12)
    assert search.best_estimator_.n_estimators == search.best_params_["n_estimators"]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (XGBClassifier(booster="dart"), "booster='dart'"),
        (XGBRegressor(booster="gblinear"), "booster='gblinear'"),
        (XGBRegressor(early_stopping_rounds=3), "early_stopping_rounds=3"),
        (XGBRegressor(random_state=np.random.RandomState(0)), "random_state is not an integer"),
        (LGBMRegressor(boosting_type="dart"), "boosting_type='dart'"),
        (LGBMClassifier(boosting="dart"), "boosting='dart'"),
        (LGBMClassifier(early_stopping_round=2), "early_stopping_round=2"),
        (LGBMClassifier(num_trees=7), "num_trees overrides n_estimators"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_nest_is_left_alone(model, reason):
    with pytest.raises(Unsupported, match=reason):
        family_of(type(model)).check(model, [{"n_estimators": n} for n in (2, 3)])


@pytest.mark.parametrize("model", [MODELS[2], MODELS[5]], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("name", ["a[1]", "a{1}", "f1 ", "Länge", "a,b", ""])
def test_names_of_columns_that_a_library_may_refuse_are_left_to_it(model, name):
    frame = pd.DataFrame(X[:, :3], columns=[name, "f1_", "f2 (cm)"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        searches = [
            cls(model, {"n_estimators": [2, 4]}, cv=3, refit=False, error_score=-9.0)
            for cls in (GridSearchCV, sklearn.model_selection.GridSearchCV)
        ]
        ours, theirs = (_outcome(search, frame) for search in searches)
    assert ours == (theirs if isinstance(theirs, str) else pytest.approx(theirs, rel=1e-12))


def _outcome(search, frame):
    """Scores, or the first line of the error where all fits fail."""
    try:
        return search.fit(frame, NUMBERS).cv_results_["mean_test_score"].tolist()
    except ValueError as error:
        return str(error).split("\n")[1]


def test_plain_names_of_columns_are_shared():
    frame = pd.DataFrame(X[:, :3], columns=["petal width (cm)", "f1_", "share-%"])
    for model in (MODELS[2], MODELS[5]):
        assert both(model, {"n_estimators": [2, 4]}, frame, NUMBERS, cv=3).report_.fits_done == 3


@pytest.mark.parametrize(
    "model", [XGBRegressor(n_jobs=1), LGBMRegressor(**QUIET)], ids=lambda m: type(m).__name__
)
def test_scores_of_whole_targets_are_scikit_learns(model):
    """scikit-learn scores predictions of float32 in single precision if the targets are integers."""
    grid, y = {"n_estimators": [1, 2, 5]}, np.round(10 * NUMBERS).astype(int)
    theirs = sklearn.model_selection.GridSearchCV(model, grid, refit=False).fit(X, y).cv_results_
    ours = GridSearchCV(model, grid, refit=False).fit(X, y)
    assert ours.report_.fits_done == 5
    for split in range(5):
        name = f"split{split}_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs[name], rtol=1e-13)


def test_a_subclass_is_left_alone():
    class Own(XGBRegressor):
        pass

    search = GridSearchCV(Own(n_jobs=1), {"n_estimators": [2, 3]}, refit=False, cv=3).fit(X, NUMBERS)
    assert search.report_.fits_done == 6 and search.report_.fits_shared == 0


def test_neither_library_is_imported_for_others():
    script = "import sys, manyfit.model_selection; assert not {'xgboost', 'lightgbm'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
