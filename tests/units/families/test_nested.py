"""Settings that nest: one fit of the largest one on each split gives scikit-learn's numbers for all."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import ParameterGrid
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from manyfit.estimators import family_of
from manyfit.folds import FoldArrays, SingleFold, Unsupported
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.running._executors import spare_threads
from tests._covering import covering, spread
from tests._same_results import both

rng = np.random.default_rng(0)
N = 120
CODES = rng.integers(0, 3, N)
X = rng.normal(size=(N, 5)) + 0.5 * CODES[:, None]
LABELS, NUMBERS = np.array(["no", "so", "yes"])[CODES], X[:, 0] + rng.normal(size=N)
X[::9, 2] = X[0, 2]  # ties
WEIGHTS = rng.random(N) + 0.1
TEST = np.arange(N) % 4 == 0
MEMBERS = [4, 1, 9]

SEED: dict[str, Any] = {"random_state": 0}
ENSEMBLES = [
    RandomForestClassifier(max_depth=3, **SEED),
    RandomForestClassifier(n_jobs=2, bootstrap=False, **SEED),
    BaggingClassifier(max_features=2, **SEED),
    AdaBoostClassifier(**SEED),
    GradientBoostingClassifier(subsample=0.5, **SEED),
    GradientBoostingClassifier(n_iter_no_change=1, tol=0.2, validation_fraction=0.4, **SEED),
    ExtraTreesRegressor(ccp_alpha=0.05, **SEED),
    BaggingRegressor(DecisionTreeRegressor(max_depth=2), **SEED),
    AdaBoostRegressor(**SEED),
    GradientBoostingRegressor(**SEED),
]
BOOSTERS = [
    HistGradientBoostingClassifier(min_samples_leaf=5),
    HistGradientBoostingRegressor(early_stopping=True, n_iter_no_change=1, tol=0.5, **SEED),
]
LIMITED = [
    DecisionTreeRegressor(criterion="absolute_error", max_depth=3, **SEED),
    ExtraTreeClassifier(max_features=2, min_samples_leaf=3, **SEED),
]
TREES = [DecisionTreeClassifier(**SEED), DecisionTreeRegressor(max_leaf_nodes=12, **SEED)]
CASES = [
    *((model, {"n_estimators": MEMBERS}) for model in ENSEMBLES),
    *((model, {"max_iter": MEMBERS}) for model in BOOSTERS),
    *((model, {"ccp_alpha": [0.01, 0.0, 0.1, 10.0]}) for model in TREES),
    *((model, {"max_leaf_nodes": [5, None, 2, 1000], "ccp_alpha": [0.02, 0.0]}) for model in TREES[:1]),
    *((model, {"max_leaf_nodes": [4, 9]}) for model in LIMITED),
    *(
        (model, {"n_estimators": [4, 9], "max_leaf_nodes": [5, None, 12], "ccp_alpha": [0.0, 0.01, 10.0]})
        for model in (ENSEMBLES[0], ExtraTreesRegressor(max_features=2, bootstrap=True, **SEED))
    ),
]


def target(model: Any) -> Any:
    return LABELS if is_classifier(model) else NUMBERS


def one_fold(y: Any, weights: Any = None) -> SingleFold:
    train = ~TEST
    weight = None if weights is None else weights[train]
    return SingleFold(FoldArrays(X[train], y[train], X[TEST], y[TEST], weight, X[train], y[train], y[TEST]))


@pytest.mark.cases(7)
@pytest.mark.parametrize(
    ("model", "grid", "weights"), covering(CASES, {"plain": None, "weighted": WEIGHTS}.items(), strength=1)
)
def test_responses_are_equal_to_the_bit(model, grid, weights):
    y, family = target(model), family_of(type(model))
    given = {name: getattr(model, name) for name in family.free}
    settings = [given | setting for setting in ParameterGrid(grid)]
    family.check(model, settings)
    folded = one_fold(y, weights)
    (answers,) = family.fit_many(model, settings, folded)
    assert answers.fits_made == 1 + (None in grid.get("max_leaf_nodes", []))
    chosen = [*range(1, len(settings)), 0]
    fold, kept = folded.fold(0), answers.subset(chosen)
    fit_params = {} if weights is None else {"sample_weight": weights[~TEST]}
    for place, j in enumerate(chosen):
        alone = clone(model).set_params(**settings[j]).fit(X[~TEST], y[~TEST], **fit_params)
        for role, rows in (("test", X[TEST]), ("train", X[~TEST])):
            for method, found in kept.respond(role, fold).items():
                assert_array_equal(found[place], getattr(alone, method)(rows), err_msg=method)


@pytest.mark.parametrize(
    "model", [RandomForestClassifier(**SEED), GradientBoostingRegressor(**SEED)], ids=str
)
def test_searches_make_one_fit_a_split(model):
    rows = sp.random(N, 8, 0.4, format="csr", random_state=0)
    for data in (X, X.astype(np.float32), rows):
        search = both(model, {"n_estimators": [2, 5], "max_depth": [1, 3]}, data, target(model), cv=3)
        assert (search.report_.fits_done, search.report_.fits_shared) == (6, 12)
        assert search.best_estimator_.n_estimators == search.best_params_["n_estimators"]


@pytest.mark.parametrize("model", [RandomForestClassifier(**SEED), BaggingRegressor(**SEED)], ids=str)
def test_workers_that_would_be_idle_are_threads_of_the_last_fits(model, monkeypatch):
    fit, found = type(model).fit, []

    @functools.wraps(fit)  # or the class would not be shared
    def noted(self, *args, **kwargs):
        found.append(joblib.effective_n_jobs(None))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(type(model), "fit", noted)
    with joblib.parallel_config("threading"):
        ours = GridSearchCV(model, {"n_estimators": MEMBERS}, cv=3, n_jobs=2, refit=False)
        ours.fit(X, target(model))
    assert sorted(found) == [1, 1, 2]
    alone = GridSearchCV(model, {"n_estimators": MEMBERS}, cv=3, refit=False).fit(X, target(model))
    for split in range(3):
        name = f"split{split}_test_score"
        assert_array_equal(ours.cv_results_[name], alone.cv_results_[name])


@pytest.mark.parametrize(
    ("n_items", "n_workers", "threads"),
    [(5, 2, [1, 1, 1, 1, 2]), (5, 16, [3] * 5), (4, 2, [1] * 4), (3, 1, [1] * 3), (7, 4, [1] * 7)],
)
def test_idle_workers_are_divided(n_items, n_workers, threads):
    assert spare_threads(n_items, n_workers) == threads


REFUSED = [
    (RandomForestClassifier(), "random_state is not an integer"),
    (RandomForestClassifier(random_state=np.random.RandomState(0)), "random_state is not an integer"),
    (RandomForestClassifier(oob_score=True, **SEED), "oob_score=True"),
    (RandomForestRegressor(warm_start=True, **SEED), "warm_start=True"),
    (GradientBoostingRegressor(init=DecisionTreeRegressor(), **SEED), "init is an estimator"),
    (BaggingClassifier(type("Own", (KNeighborsClassifier,), {})(), **SEED), "Own may draw other"),
    (HistGradientBoostingClassifier(early_stopping=True), "random_state is not an integer"),
]


@pytest.mark.parametrize(
    ("model", "reason"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_does_not_nest_is_left_alone(model, reason):
    family = family_of(type(model))
    with pytest.raises(Unsupported, match=reason):
        family.check(model, [{family.parameter: n} for n in (2, 3)])


@pytest.mark.parametrize("value", [1, 2.5, "3"])
def test_numbers_of_leaves_that_are_none_are_left_alone(value):
    with pytest.raises(Unsupported, match="max_leaf_nodes"):
        family_of(DecisionTreeClassifier).check(
            DecisionTreeClassifier(**SEED), [{"ccp_alpha": 0.0, "max_leaf_nodes": value}]
        )


@pytest.mark.parametrize("value", [0, 2.0, True, "3", None])
def test_numbers_of_members_that_are_none_are_left_alone(value):
    with pytest.raises(Unsupported, match="n_estimators"):
        family_of(AdaBoostClassifier).check(AdaBoostClassifier(**SEED), [{"n_estimators": value}])


def test_rows_to_score_with_gaps_fail_as_in_scikit_learn():
    """Before 1.9 no tree splits gaps by absolute errors; sparse rows never hold gaps."""
    gaps = X.copy()
    gaps[-1, 0] = np.nan
    for rows in (gaps, sp.csr_array(gaps)):
        model = RandomForestRegressor(criterion="absolute_error", max_depth=2, **SEED)
        folded = SingleFold(
            FoldArrays(
                rows[:90], NUMBERS[:90], rows[90:], NUMBERS[90:], None, rows[:90], NUMBERS[:90], NUMBERS[90:]
            )
        )
        size = {"n_estimators": 2, "max_leaf_nodes": None, "ccp_alpha": 0.0}
        alone = clone(model).set_params(n_estimators=2).fit(rows[:90], NUMBERS[:90])
        (answers,) = family_of(type(model)).fit_many(model, [size], folded)
        try:
            expected = alone.predict(rows[90:])
        except ValueError:
            with pytest.raises(ValueError, match="NaN"):
                answers.respond("test", folded.fold(0))["predict"]
        else:
            assert_array_equal(answers.respond("test", folded.fold(0))["predict"][0], expected)


def test_many_rows_may_be_drawn_from_without_a_seed(monkeypatch):
    """`early_stopping="auto"` stops early beyond some rows, and then draws the rows that it watches."""
    monkeypatch.setattr("manyfit.families.nested._boosting._MOST_WITHOUT_STOPPING", 50)
    search = GridSearchCV(HistGradientBoostingRegressor(), {"max_iter": [1, 2]}, cv=3).fit(X, NUMBERS)
    assert search.report_.fits_shared == 0
    assert "draws from more than 50 rows" in str(search.report_)


def test_a_fit_that_warns_is_scikit_learns():
    few = GridSearchCV(BaggingRegressor(**SEED), {"n_estimators": [1, 2]}, cv=3)
    with pytest.warns(Warning, match="column-vector"):
        few.fit(X, NUMBERS[:, None])
    assert few.report_.fits_shared == 0


SEVERAL = np.column_stack([CODES > 0, X[:, 1] > 0.3, CODES]).astype(int)
OF_SEVERAL = [
    (DecisionTreeClassifier(**SEED), {"max_leaf_nodes": [5, None, 2], "ccp_alpha": [0.02, 0.0]}),
    (DecisionTreeClassifier(class_weight="balanced", **SEED), {"ccp_alpha": [0.0, 0.01, 0.1]}),
    (ExtraTreeClassifier(**SEED), {"max_leaf_nodes": [4, 9]}),
    (RandomForestClassifier(max_features=2, **SEED), {"n_estimators": [4, 1], "max_leaf_nodes": [5, None]}),
    # Pure leaves: threads add fractions in any order.
    (RandomForestClassifier(n_jobs=2, bootstrap=False, **SEED), {"n_estimators": [4, 2]}),
]


@pytest.mark.cases(5)
@pytest.mark.parametrize(("model", "grid"), OF_SEVERAL, ids=str)
@pytest.mark.parametrize("y", [SEVERAL, LABELS[SEVERAL], SEVERAL[:, 2:]], ids=["codes", "texts", "one"])
def test_several_labels_are_equal_to_the_bit(model, grid, y):
    if y.shape[1] == 1 and isinstance(model, RandomForestClassifier):
        return  # it warns
    y, family = y.copy(), family_of(type(model))
    y[~TEST, 0] = y[0, 0]  # one class in the training rows
    given = {name: getattr(model, name) for name in family.free}
    settings, folded = [given | setting for setting in ParameterGrid(grid)], one_fold(y)
    (answers,) = family.fit_many(model, settings, folded)
    for j, setting in enumerate(settings):
        alone = clone(model).set_params(**setting).fit(X[~TEST], y[~TEST])
        for role, rows in (("test", X[TEST]), ("train", X[~TEST])):
            found = answers.subset([j]).respond(role, folded.fold(0))
            assert_array_equal(found["predict"][0], alone.predict(rows))
            for ours, theirs in zip(found["predict_proba"][0], alone.predict_proba(rows), strict=True):
                assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "scoring", spread([["f1_macro", "accuracy", "f1_micro"], None, "accuracy", "roc_auc"], 2)
)
def test_searches_of_several_labels(scoring):
    two, options = SEVERAL[:, :2], {"cv": 3, "scoring": scoring, "return_train_score": True, "refit": False}
    for model, grid in OF_SEVERAL[1::2]:
        search = both(model, grid, X, two, compare={"rtol": 0, "atol": 0}, **options)
        assert search.report_.fits_shared == search.report_.fits_requested > 6 >= search.report_.fits_done


def test_several_classes_of_several_labels_fail_as_in_scikit_learn():
    search = GridSearchCV(TREES[0], {"ccp_alpha": [0.0, 0.1]}, scoring="f1_macro", cv=3, error_score=np.nan)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        search.fit(X, SEVERAL)
    assert sum("not supported" in str(one.message) for one in seen) == 6
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
