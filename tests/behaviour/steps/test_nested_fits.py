"""A fit that serves other settings leaves each of them what its own fit learns and returns, to the bit."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.model_selection
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.impute import KNNImputer
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.nested import NestedRequests
from manyfit.model_selection.sharing.transformers._step_wrappers import share_prefixes
from tests._covering import covering
from tests.behaviour.steps._nested_values import FORMS, check_values, rows_of, values


@pytest.fixture(autouse=True)
def quiet():
    """Selectors that leave no column, and constant columns, are warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


PCA_VALUES = values("n_components", 2, 0.8, 1, None, 0.99, 3, 0, np.int64(4))
KINDS = ["normal", "ties", "low rank", "offset", "constant"]
SOLVERS, SHAPES = ["auto", "full", "covariance_eigh"], [(12, 5), (80, 6), (7, 19)]


@pytest.mark.cases(6)
@pytest.mark.parametrize(("solver", "form", "whiten"), covering(SOLVERS, FORMS, [False, True]))
def test_components_of_pca(solver, form, whiten):
    if form == "sparse" and solver != "covariance_eigh":
        return
    step, turn = PCA(svd_solver=solver, whiten=whiten), SOLVERS.index(solver) + list(FORMS).index(form)
    for seed, kind in [*enumerate(KINDS)][turn % 2 :: 2]:
        # Each kind of rows is in every second form, in one shape here and every shape in the others.
        n, p = SHAPES[(turn + seed) % 3]
        X, y = rows_of(kind, n, p, seed)
        container = "pandas" if form == "frame" else None
        fits, _ = check_values(step, PCA_VALUES, FORMS[form](X), y, container=container)
        if not (n < p and step.svd_solver == "covariance_eigh"):
            assert fits <= 3  # one of all components; shares that rounding may decide have their own


@pytest.mark.parametrize(
    "step",
    [
        PCA(svd_solver="arpack", random_state=0),
        PCA(svd_solver="randomized", random_state=0),
        TruncatedSVD(random_state=0),
        TruncatedSVD(algorithm="arpack", random_state=0),
    ],
)
def test_solvers_whose_digits_depend_on_the_number_are_fitted_for_each(step):
    X, y = rows_of("normal", 40, 12, 0)
    assert check_values(step, values("n_components", 5, 3, 2), X, y) == (3, 0)


def test_auto_is_resolved_for_each_number_of_components():
    X, y = rows_of("normal", 510, 60, 0)
    step = PCA(random_state=0)
    # 0.8 * 60 = 48: below that number "auto" draws.
    assert check_values(step, values("n_components", 50, 55, 10, 20, None, 0.5), X, y) == (3, 3)


def test_numbers_of_components_that_are_refused_and_mle():
    X, y = rows_of("normal", 30, 5, 0)
    step = PCA(svd_solver="full")
    params = values("n_components", 2, 9, "mle", 3, -1, 1.0, 1.5, "many")
    fits, saved = check_values(step, params, X, y)
    assert (fits, saved) == (2, 1)


FOREST = RandomForestClassifier(2, random_state=0)
TREE = DecisionTreeClassifier(random_state=0)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("estimator", "form"),
    covering([TREE, Lasso(0.1)], [form for form in FORMS if form != "integers"], strength=1),
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_thresholds_and_most_columns_of_an_inner_estimator(estimator, form):
    X, y = rows_of("normal", 40, 6, 1)
    thresholds = ["mean", "median", "0.5*mean", None, 0.01, -np.inf, 10]
    params = [{"threshold": t, "max_features": k} for t in thresholds for k in (None, 2)]
    params += [{"threshold": t, "max_features": k} for t in ("mean", -np.inf) for k in (0, 6)]
    container = "pandas" if form == "frame" else None
    fits, saved = check_values(SelectFromModel(estimator), params, FORMS[form](X), y, container=container)
    assert (fits, saved) == (1, len(params) - 1)


def test_odd_thresholds_are_refused_and_functions_are_called():
    X, y = rows_of("normal", 30, 5, 0)
    params = [
        {"threshold": "mean", "max_features": 2},
        {"threshold": "twice", "max_features": None},
        {"threshold": "mean", "max_features": -1},
        {"threshold": "mean", "max_features": 2.5},
        {"threshold": "mean", "max_features": partial(len)},
        {"threshold": "median", "max_features": 3},
    ]
    fits, saved = check_values(SelectFromModel(TREE), params, X, y)
    assert fits >= 1
    assert saved >= 1
    fitted = SelectFromModel(clone(TREE).fit(X, y), prefit=True)
    check_values(fitted, values("threshold", "mean", "median"), X, y)


STEPS = [(1, "array"), (2, "frame"), (3, "sparse"), (0.3, "float32"), (3, "array"), (20, "fortran")]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("estimator", "step", "form"), covering([TREE, Ridge()], STEPS, strength=1))
def test_numbers_of_features_of_rfe(estimator, step, form):
    for kind in ("ties", "constant"):
        X, y = rows_of(kind, 30, 8, 2)
        params = values("n_features_to_select", 6, 2, None, 0.9, 7, 1, 8, 5)
        rfe = RFE(estimator, step=step)
        fits, saved = check_values(
            rfe, params, FORMS[form](X), y, container="pandas" if form == "frame" else None
        )
        assert fits + saved == len(params)
        assert saved == len(params) - 1 or step != 1


def test_rfe_reads_importances_as_it_is_told_and_refuses_what_it_refuses():
    X, y = rows_of("normal", 40, 7, 3)
    for getter in ("feature_importances_", by_depth):
        rfe = RFE(TREE, importance_getter=getter)
        assert check_values(rfe, values("n_features_to_select", 1, 3, 6), X, y) == (1, 2)
    params = values("n_features_to_select", 2, 0, -1, 1.5, 99, 3, 0.0, "all")
    _, saved = check_values(RFE(TREE), params, X, y)
    assert saved == 1
    draws = RFE(RandomForestClassifier(3, random_state=None))
    cache = FoldCache(None)
    pipe = make_pipeline(draws, GaussianNB())
    cache.requests = NestedRequests(pipe, [{"rfe__n_features_to_select": k} for k in (1, 2, 3)])
    for k in (1, 2, 3):
        share_prefixes(clone(pipe).set_params(rfe__n_features_to_select=k), cache).fit(
            cache.share(X), cache.share(y)
        )
    assert (cache.fits, cache.saved) == (3, 0)


def by_depth(tree):
    return tree.feature_importances_ * tree.get_depth()


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("direction", "form"),
    covering(["forward", "backward"], ["array", "frame", "sparse"], strength=1),
)
def test_numbers_of_features_of_sequential_selection(direction, form):
    X, y = rows_of("ties", 20, 5, 2)
    sfs = SequentialFeatureSelector(Ridge(), direction=direction, cv=2)
    params = values("n_features_to_select", 3, 1, 4, "auto", 0.5)
    container = "pandas" if form == "frame" else None
    assert check_values(sfs, params, FORMS[form](X), y, container=container) == (1, len(params) - 1)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_tolerances_of_sequential_selection(direction):
    for seed in range(1):
        X, y = rows_of("normal", 30, 4, seed)
        sfs = SequentialFeatureSelector(LinearRegression(), direction=direction, cv=2)
        found = [0.1, 1e-3, 1.0, 0.0, *([-0.05] if direction == "backward" else [])]
        assert check_values(sfs, values("tol", *found), X, y) == (1, len(found) - 1)
        refused = values("tol", 0.1, -0.1, float("inf"), "small", 0.01) if direction == "forward" else []
        check_values(sfs, refused, X, y)
    number = values("n_features_to_select", 1, 2, 4, 5, 0, 0.1, 1.0, "most", None)
    check_values(sfs, number, X, y)


LINKAGES, CONTENTS = ["ward", "complete", "average", "single"], ["array", "fortran", "float32", "frame"]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("linkage", "form", "linked"), covering(LINKAGES, CONTENTS, [False, True], strength=1)
)
def test_numbers_of_clusters_of_columns(linkage, form, linked):
    connectivity = np.eye(9, k=1) + np.eye(9, k=-1) if linked else None
    for kind in ("ties", "constant"):
        X, y = rows_of(kind, 20, 9, 3)
        step = FeatureAgglomeration(linkage=linkage, connectivity=connectivity)
        params = values("n_clusters", 3, 9, 1, 2, 5)
        container = "pandas" if form == "frame" else None
        assert check_values(step, params, FORMS[form](X), y, container=container) == (1, 4)
        step = clone(step).set_params(n_clusters=None, compute_full_tree=True)
        params = values("distance_threshold", 1.0, 0.0, 5.0, 30.0)
        assert check_values(step, params, FORMS[form](X), y, container=container) == (1, 3)


def test_a_part_of_a_tree_has_its_own_labels_and_its_own_fit():
    X, y = rows_of("normal", 20, 130, 3)
    chain = np.eye(130, k=1) + np.eye(130, k=-1)
    step = FeatureAgglomeration(connectivity=chain)
    assert check_values(step, values("n_clusters", 3, 120, 99, 110), X, y) == (3, 1)
    step = FeatureAgglomeration(connectivity=chain, compute_full_tree=False)
    assert check_values(step, values("n_clusters", 3, 10), X, y) == (2, 0)
    params = values("n_clusters", 3, 131, 0, None, 4)
    assert check_values(FeatureAgglomeration(), params, X, y)[1] == 1


SEARCHES = [
    (KNNImputer(missing_values=0.0), {"n_neighbors": [1, 3], "weights": ["uniform", "distance"]}),
    (PCA(), {"n_components": [2, 3, 5]}),
    (RFE(TREE), {"n_features_to_select": [2, 5], "step": [1, 2]}),
    (SelectFromModel(FOREST), {"threshold": ["mean", "median"], "max_features": [None, 2]}),
    (
        SequentialFeatureSelector(DecisionTreeRegressor(max_depth=1, random_state=0), cv=2),
        {"n_features_to_select": [1, 2]},
    ),
    (FeatureAgglomeration(), {"n_clusters": [2, 3, 5]}),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("place", "which"), covering(["pipeline", "columns", "union"], range(len(SEARCHES)), strength=1)
)
def test_searches_count_what_they_made_and_what_they_saved(place, which):
    step, grid = SEARCHES[which]
    X, y = rows_of("normal", 40, 6, 0)
    frame = pd.DataFrame(X, columns=list("abcdef")) if place == "columns" else X
    if place == "pipeline":
        pipe, path = make_pipeline(MinMaxScaler(clip=True), step, SVC()), type(step).__name__.lower()
    elif place == "columns":
        columns = ColumnTransformer([("part", step, list("abcde"))], remainder="passthrough")
        pipe, path = make_pipeline(columns, SVC()).set_output(transform="pandas"), "columntransformer__part"
    else:
        pipe = make_pipeline(make_union(StandardScaler(), step), SVC())
        path = f"featureunion__{type(step).__name__.lower()}"
    grid = {f"{path}__{name}": found for name, found in grid.items()} | {"svc__C": [0.1, 10.0]}
    search = GridSearchCV(pipe, grid, cv=2, return_train_score=True)
    plan, report = search.plan(frame, y), search.fit(frame, y).report_
    reference = sklearn.model_selection.GridSearchCV(pipe, grid, cv=2, return_train_score=True).fit(frame, y)
    for name, found in reference.cv_results_.items():
        if "score" in name and "time" not in name:
            assert_array_equal(search.cv_results_[name], found)
    made, saved = report.transformer_fits, report.transformer_fits_saved
    n_steps = 1 if place == "columns" else 2
    n_kinds = 2 if isinstance(step, RFE) else 1
    assert made + saved == n_steps * report.fits_requested
    assert made == 2 * (n_kinds + n_steps - 1)
    if not (place != "pipeline" and isinstance(step, PCA)):  # the plan does not know the columns of a part
        assert made == plan.transformer_fits
        assert f"a fit of {type(step).__name__} serves every" in str(plan)


def test_a_callable_scorer_sees_the_fit_of_its_own_setting():
    X, y = rows_of("normal", 60, 6, 0)

    def score(model, X, y):
        step = model[0]
        return float(np.sum(step.estimator_.feature_importances_) + step.n_features_ + step.ranking_.max())

    pipe, grid = make_pipeline(RFE(TREE), GaussianNB()), {"rfe__n_features_to_select": [4, 1, 2]}
    ours = GridSearchCV(pipe, grid, scoring=score, cv=2).fit(X, y)
    theirs = sklearn.model_selection.GridSearchCV(pipe, grid, scoring=score, cv=2).fit(X, y)
    assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert ours.report_.transformer_fits_saved == 4


class FailsForOne(LogisticRegression):
    def fit(self, X, y):
        if X.shape[1] == 1:
            raise ValueError("one column is too few")
        return super().fit(X, y)


def test_a_path_that_fails_leaves_the_settings_to_their_own_fits():
    X, y = rows_of("normal", 60, 6, 0)
    pipe, grid = make_pipeline(RFE(FailsForOne()), GaussianNB()), {"rfe__n_features_to_select": [4, 1, 2]}
    ours = GridSearchCV(pipe, grid, cv=2).fit(X, y)
    theirs = sklearn.model_selection.GridSearchCV(pipe, grid, cv=2).fit(X, y)
    assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert np.isnan(ours.cv_results_["mean_test_score"][1])


def test_a_wide_fit_that_does_not_fit_in_memory_is_made_once():
    X, y = rows_of("normal", 60, 6, 0)
    pipe = make_pipeline(RFE(TREE), GaussianNB())
    cache = FoldCache(1)
    cache.requests = NestedRequests(pipe, [{"rfe__n_features_to_select": k} for k in (3, 2, 1)])
    for k in (3, 2, 1):
        share_prefixes(clone(pipe).set_params(rfe__n_features_to_select=k), cache).fit(
            cache.share(X), cache.share(y)
        )
    assert (cache.fits, cache.saved) == (3, 0)  # the path serves the first, and the others are fitted


def test_one_setting_makes_its_own_fit():
    X, y = rows_of("normal", 30, 6, 0)
    cache = FoldCache(None)
    pipe = make_pipeline(PCA(2), GaussianNB())
    cache.requests = NestedRequests(pipe, [{"pca__n_components": 2}, {"pca__n_components": 2}])
    share_prefixes(pipe, cache).fit(cache.share(X), cache.share(y))
    kept = [entry.output for entry in cache._entries.values() if entry.has_output]
    assert [one.shape for one in kept] == [(30, 2)]
