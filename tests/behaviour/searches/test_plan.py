"""The plan says what fit will do, and fit does it."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import HuberRegressor, Lasso, LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import check_is_fitted

from manyfit.model_selection import BaseSearchCV, GridSearchCV, RandomizedSearchCV
from tests._same_results import LABELS, X_CLASS, X, Y

ALPHAS = {"alpha": [0.1, 1.0, 10.0]}
SVC_PIPELINE = make_pipeline(StandardScaler(), PCA(), SVC())
NO_FAMILY = "manyfit knows no work that fits of HuberRegressor have in common"


def test_a_shared_group_as_text():
    plan = GridSearchCV(Ridge(), ALPHAS).plan(X, Y)
    text = str(plan)
    assert text.startswith(plan.verdict)
    assert text.splitlines()[1].startswith(
        "Plan: 3 settings x 5 splits = 15 fits asked for, 0 to be made; passes over X"
    )
    assert (
        "└─ shared through moments" in text and "Ridge: 3 settings, 15 fits asked for, 0 to be made" in text
    )
    assert repr(plan) == text
    assert (plan.fits_requested, plan.fits_planned, plan.passes) == (15, 0, 1.0)


@pytest.mark.parametrize(
    ("estimator", "grid", "kind", "reason"),
    [
        (Ridge(), ALPHAS, "moments", ""),
        (
            HuberRegressor(),
            ALPHAS,
            "one by one",
            NO_FAMILY,
        ),
        (
            make_pipeline(StandardScaler(), HuberRegressor()),
            {"huberregressor__alpha": [1, 2]},
            "shared steps",
            NO_FAMILY,
        ),
        (make_pipeline(PolynomialFeatures(), Ridge()), {"ridge__alpha": [1, 2]}, "moments", ""),
        (
            make_pipeline(QuantileTransformer(n_quantiles=9), Ridge()),
            {"ridge__alpha": [1, 2]},
            "shared in folds",
            "",
        ),
        (
            Ridge(solver="lsqr"),
            ALPHAS,
            "one by one",
            "solver='lsqr' iterates over rows",
        ),
    ],
)
def test_kinds_and_reasons(estimator, grid, kind, reason):
    plan = GridSearchCV(estimator, grid).plan(X, Y)
    (group,) = plan.groups
    assert (group.kind, group.reason) == (kind, reason)
    assert reason in str(plan) and reason.replace("'", "&#x27;") in plan._repr_html_()


@pytest.mark.parametrize("estimator", [Ridge(), make_pipeline(QuantileTransformer(n_quantiles=9), Ridge())])
def test_scores_from_predictions_are_named(estimator):
    name = next(n for n in estimator.get_params() if n.endswith("alpha"))
    note = "; scores from predictions, by scikit-learn's scorer once a setting and split"
    for scoring, named in (("r2", False), ("neg_max_error", False), (make_scorer(lambda y, p: 0.0), True)):
        plan = GridSearchCV(estimator, {name: [1.0, 2.0]}, scoring=scoring).plan(X, Y)
        assert (note in str(plan), plan.from_predictions) == (named, named)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.FitFailedWarning")
def test_values_are_not_looked_at():
    """A plan is of shapes and types; what NaN does shows in the report."""
    broken = X.copy()
    broken[0] = np.nan
    search = GridSearchCV(Ridge(), ALPHAS, cv=2, refit=False)
    assert search.plan(broken, Y).fits_planned == 0
    search.fit(broken, Y)
    assert search.report_.fits_done == 6 and "no finite moments" in str(search.report_)


def test_html_is_escaped_and_has_a_row_for_each_group():
    html = (
        GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1, -1]})
        .plan(X, Y)
        ._repr_html_()
    )
    assert html.count("<tr>") == 3
    assert "StandardScaler &gt; Ridge" in html and "alpha=-1 is not in the range [0, 2147483648]" in html


def test_a_misspelt_parameter_is_named():
    (group,) = GridSearchCV(Ridge(), {"alhpa": [1.0]}).plan(X, Y).groups
    assert group.reason.startswith(
        "scikit-learn refuses the setting: Invalid parameter 'alhpa' for estimator Ridge()"
    )


def test_a_line_of_the_plan_names_the_classes_of_its_settings():
    model = Pipeline([("scale", QuantileTransformer(n_quantiles=10)), ("last", HuberRegressor())])
    grid = [{"last__epsilon": [1.2, 1.5]}, {"last": [Ridge(), Lasso()], "last__alpha": [0.1, 1.0]}]
    plan = GridSearchCV(model, grid, scoring=lambda estimator, X, y: 0.0).plan(X, Y)
    lines = [(group.estimator, group.candidates) for group in plan.groups]
    assert lines == [
        ("QuantileTransformer > HuberRegressor", (0, 1)),
        ("QuantileTransformer > Ridge", (2, 3)),
        ("QuantileTransformer > Lasso", (4, 5)),
    ]


@pytest.mark.parametrize(
    ("grid", "reason"),
    [
        ({"max_depth": [2, 4]}, "shares fits of settings that differ in nothing but"),
        ({"max_depth": [2, 4], "n_estimators": [2, 4]}, "random_state is not an integer"),
    ],
)
def test_a_seed_is_the_reason_only_where_it_would_help(grid, reason):
    plan = GridSearchCV(RandomForestRegressor(), grid).plan(X, Y)
    assert all(reason in group.reason for group in plan.groups)
    assert bool(plan.advice) == ("n_estimators" in grid)


def test_the_plan_names_the_parameter_of_an_ensemble_that_draws():
    model = VotingRegressor([("a", Ridge()), ("b", RandomForestRegressor(2))])
    (group,) = GridSearchCV(model, {"weights": [[1, 1], [1, 2]]}).plan(X, Y).groups
    assert group.reason == "b__random_state is None: it draws random numbers anew in each fit"


def test_the_plan_says_how_a_list_can_be_shared():
    (group,) = GridSearchCV(Ridge(), ALPHAS).plan(X.tolist(), Y.tolist()).groups
    assert group.reason == "X is a list, not a dense array or DataFrame: pass numpy.asarray(X)"


def test_a_shared_group_says_why_it_shares_no_more():
    pipe = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Lasso())
    (group,) = GridSearchCV(pipe, {"lasso__alpha": [0.1, 1.0]}).plan(X.round(), Y).groups
    assert group.kind == "shared in folds"
    assert group.reason.startswith("no moments, because the rows behind the steps are sparse")


def test_one_bad_setting_leaves_the_others_shared():
    plan = GridSearchCV(Ridge(), {"alpha": [0.1, -1.0, 10.0]}).plan(X, Y)
    assert {g.kind: g.candidates for g in plan.groups} == {"moments": (0, 2), "one by one": (1,)}
    assert plan.fits_planned == 5


@pytest.mark.invariant("A run does what its plan says")
@pytest.mark.parametrize(
    ("estimator", "grid", "X", "y"),
    [
        (Ridge(), ALPHAS, X, Y),
        (SVC_PIPELINE, {"pca__n_components": [2, 3], "svc__C": [1, 2]}, X_CLASS, LABELS),
        (make_pipeline(QuantileTransformer(n_quantiles=9), Ridge()), {"ridge__alpha": [1, 2]}, X, Y),
    ],
)  # fmt: skip
def test_what_is_planned_is_done(estimator, grid, X, y):
    search = GridSearchCV(estimator, grid, cv=3)
    plan = search.plan(X, y)
    report = search.fit(X, y).report_
    assert plan.fits_requested == report.fits_requested
    assert plan.fits_planned <= report.fits_done <= plan.fits_planned + plan.fits_undecided
    assert plan.transformer_fits == report.transformer_fits
    assert plan.passes == report.passes


def test_a_plan_does_not_make_the_search_look_fitted():
    search = GridSearchCV(Ridge(), ALPHAS)
    search.plan(X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(search)
    assert not [name for name in vars(search) if name.endswith("_") and not name.startswith("_")]


def reachable_arrays(thing):
    seen, found, todo = set(), [], [thing]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type) or type(one).__name__ in ("module", "function"):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            found.append(one)
        todo += gc.get_referents(one)
    return found


@pytest.mark.invariant("A plan holds no data and serves only the data and search that it was made for")
def test_a_plan_holds_no_data():
    big, y = np.tile(X, (100, 1)), np.tile(Y, 100)
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1, 2]})
    plan = search.plan(big, y)
    assert max((a.nbytes for a in reachable_arrays(plan)), default=0) < 1000
    assert len(pickle.dumps(plan)) < 20_000
    assert len(pickle.dumps(search)) < 20_000
    assert (
        max((a.nbytes for a in reachable_arrays([big])), default=0) == big.nbytes
    )  # the search finds arrays


def scores(search):
    table = search.cv_results_
    return np.array([table[f"split{i}_test_score"] for i in range(search.n_splits_)])


@pytest.mark.invariant("A plan holds no data and serves only the data and search that it was made for")
def test_random_splits_are_frozen_until_fit():
    cv = ShuffleSplit(3, test_size=0.3)
    search = GridSearchCV(Ridge(), ALPHAS, cv=cv)
    search.plan(X, Y)
    frozen = search._frozen.splits
    search.fit(X, Y)
    expected = [
        [clone(Ridge(alpha=a)).fit(X[tr], Y[tr]).score(X[te], Y[te]) for a in ALPHAS["alpha"]]
        for tr, te in frozen
    ]
    np.testing.assert_allclose(scores(search), expected, rtol=1e-9)
    again = scores(search.fit(X, Y))  # a plan is used once
    assert not np.allclose(again, expected)


def test_random_settings_are_frozen_too():
    search = RandomizedSearchCV(Ridge(), {"alpha": loguniform(1e-2, 1e2)}, n_iter=4)
    search.plan(X, Y)
    planned = [params["alpha"] for params in search._frozen.candidates]
    assert [params["alpha"] for params in search.fit(X, Y).cv_results_["params"]] == planned


@pytest.mark.invariant("A plan holds no data and serves only the data and search that it was made for")
@pytest.mark.parametrize("change", ["X", "y", "weights", "parameter", "grid in place", "estimator in place"])
def test_a_plan_for_something_else_is_not_used(change):
    grid, cv = {"alpha": [0.1, 1.0]}, ShuffleSplit(2, test_size=0.3)
    search = GridSearchCV(Ridge(), grid, cv=cv)
    search.plan(X, Y)
    frozen = search._frozen.splits
    data, y, params = X.copy(), Y.copy(), {}
    if change == "X":
        data[0, 0] += 1
    elif change == "y":
        y[0] += 1
    elif change == "weights":
        params = {"sample_weight": np.ones(len(y))}
    elif change == "parameter":
        search.set_params(cv=ShuffleSplit(2, test_size=0.4))
    elif change == "grid in place":
        grid["alpha"].append(10.0)
    else:
        search.estimator.set_params(fit_intercept=False)
    search.fit(data, y, **params)
    assert len(search.cv_results_["params"]) == len(grid["alpha"])
    model = Ridge(alpha=0.1, fit_intercept=search.estimator.fit_intercept)
    stale = [model.fit(data[tr], y[tr]).score(data[te], y[te]) for tr, te in frozen]
    if change != "estimator in place":  # its splits are still the planned ones
        assert not np.allclose(scores(search)[:, 0], stale)


def test_a_plan_for_another_kind_of_y_does_not_choose_the_splitter():
    classes = (X[:, 0] > np.median(X[:, 0])).astype(int)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2, refit=False)
    search.plan(X, X)  # several targets: not stratified
    search.fit(X, classes)
    fresh = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2, refit=False).fit(X, classes)
    assert type(search._checked_cv_orig) is type(fresh._checked_cv_orig) is StratifiedKFold
    np.testing.assert_array_equal(scores(search), scores(fresh))


def test_a_splitter_changed_in_place_splits_anew():
    cv = KFold(5)
    search = GridSearchCV(Ridge(), ALPHAS, cv=cv)
    search.plan(X, Y)
    cv.n_splits = 3
    search.fit(X, Y)
    assert search.n_splits_ == 3 and "split3_test_score" not in search.cv_results_


def test_a_plan_over_a_generator_of_splits():
    search = GridSearchCV(Ridge(), ALPHAS, cv=KFold(4).split(X))
    search.plan(X, Y)
    search.fit(X, Y)
    assert search.n_splits_ == 4
    np.testing.assert_allclose(scores(search), scores(GridSearchCV(Ridge(), ALPHAS, cv=4).fit(X, Y)))


def test_a_copy_of_a_planned_search_has_no_plan():
    search = GridSearchCV(Ridge(), ALPHAS)
    search.plan(X, Y)
    assert "_frozen" not in vars(clone(search)) and "_frozen" not in vars(pickle.loads(pickle.dumps(search)))


def test_many_groups_are_counted():
    grid = {"alpha": [1.0], "tol": list(np.logspace(-6, -3, 20)), "max_iter": [None, 5]}
    text = str(GridSearchCV(Ridge(), grid).plan(X, Y))
    assert "40 settings" in text and len(text.splitlines()) < 20


def first_reads(results):
    return results["mean_test_score"].argmax()


def first_lists(results):
    return [name for name in results if name.startswith("mean")]


@pytest.mark.parametrize("read", [first_reads, first_lists, len, lambda results: results.get("params")])
def test_a_search_in_rounds_cannot_be_planned(read):
    class InRounds(BaseSearchCV):
        def __init__(self, estimator):
            super().__init__(estimator)

        def _run_search(self, evaluate_candidates):
            read(evaluate_candidates([{"alpha": 1.0}]))
            evaluate_candidates([{"alpha": 2.0}])

    with pytest.raises(NotImplementedError, match="InRounds chooses settings by the scores of others: plan"):
        InRounds(Ridge()).plan(X, Y)
    assert len(InRounds(Ridge()).fit(X, Y).cv_results_["params"]) == 2


def test_a_plan_refuses_what_fit_refuses():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GridSearchCV(Ridge(), ALPHAS).plan(X, Y[:-1])
    with pytest.raises(ValueError, match="The 'sharing' parameter of GridSearchCV must be"):
        GridSearchCV(Ridge(), ALPHAS, sharing="all").plan(X, Y)


# What is decided when rows are seen

TEXTS = [f"{a} {b} {c}" for a in ("fold", "split") for b in ("seed", "loss", "tree") for c in "abcdefghij"]
TEXT_LABELS = np.arange(60) % 2


@pytest.mark.invariant("A plan gives a range where only the data can decide")
def test_fits_behind_a_vectorizer_are_undecided():
    pipeline = make_pipeline(TfidfVectorizer(), LinearSVC())
    search = GridSearchCV(pipeline, {"linearsvc__C": list(np.logspace(-2, 2, 10))})
    plan = search.plan(TEXTS, TEXT_LABELS)
    assert (plan.fits_requested, plan.fits_planned, plan.fits_undecided) == (50, 0, 50)
    text, html = str(plan), plan._repr_html_()
    assert "50 fits asked for, 0 to 50 to be made\n" in text
    assert (
        "TfidfVectorizer > LinearSVC: 10 settings, 50 fits asked for, 0 to 50 to be made, "
        "1 fit of transformers; tokens of TfidfVectorizer on all rows at once; "
        "decided when the output of TfidfVectorizer is seen"
    ) in text
    assert ">0 to 50</td>" in html and ">the output of TfidfVectorizer</td>" in html
    report = search.fit(TEXTS, TEXT_LABELS).report_
    assert report.fits_done + report.fits_shared == 50 and report.transformer_fits == 1


def test_a_plan_makes_no_more_fits_than_are_asked_for():
    """A family that fits every setting may hand all of them back to scikit-learn."""
    search = GridSearchCV(make_pipeline(MinMaxScaler(clip=True), SVC()), {"svc__C": [1, 2, 3, 4]}, cv=5)
    plan = search.plan(X_CLASS, LABELS)
    assert (plan.fits_requested, plan.fits_planned, plan.fits_undecided) == (20, 20, 20)
    heading, row = str(plan).splitlines()[1], str(plan).splitlines()[3]
    assert heading.endswith("20 fits asked for, 20 to be made, up to 20 of them twice")
    assert row.endswith("; scikit-learn makes a fit again that shared work cannot use")


def test_what_is_decided_before_is_no_range():
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(clip=True), Ridge()),
        [{"ridge__alpha": [0.1, 1.0]}, {"ridge__alpha": [1.0, 2.0], "ridge__solver": ["lsqr"]}],
    )
    plan = search.plan(X, Y)
    assert (plan.fits_planned, plan.fits_undecided) == (10, 10)
    assert "20 fits asked for, 10 to 20 to be made" in str(plan)
    assert GridSearchCV(Ridge(), ALPHAS).plan(X, Y).fits_undecided == 0
