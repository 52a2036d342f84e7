"""The report tells what was done; verify checks it; sharing and memory_limit steer it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC

from manyfit._compat import warn_untested
from manyfit.estimators import family_of
from manyfit.folds import _single_fold
from manyfit.model_selection import GridSearchCV, Report
from tests._covering import covering, spread
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y, both
from tests._search_fixtures import RANDOM_LASSO
from tests.behaviour.families._user_families import RowsFamily, Shrunk

AFFINE = make_pipeline(StandardScaler(), PCA(), Ridge())
AFFINE_GRID = {"pca__n_components": [2, 4], "ridge__alpha": [0.1, 1.0]}


def test_a_moments_search_makes_no_fit_and_one_pass():
    report = both(AFFINE, AFFINE_GRID, cv=4).report_
    assert (report.fits_requested, report.fits_done, report.fits_shared) == (16, 0, 16)
    assert (report.transformer_fits, report.passes) == (0, 1.0)
    assert (report.bytes_to_device, report.bytes_to_host, report.synchronisations) == (0, 0, 0)
    assert {"plan", "moments", "refit", "total"} <= set(report.seconds)
    assert all(s >= 0 for s in report.seconds.values())
    assert report.seconds["total"] >= report.seconds["moments"]


@pytest.mark.parametrize(
    "scoring", spread(["neg_mean_absolute_error", "neg_median_absolute_error", ["r2", "neg_max_error"]], 2)
)
def test_other_scorers_read_batched_predictions(scoring):
    search = both(AFFINE, AFFINE_GRID, scoring=scoring, refit=False, return_train_score=True)
    assert search.report_.fits_done == 0 and not search.report_.left_to_sklearn


def test_weights_of_the_fit_take_another_pass():
    report = both(Ridge(), {"alpha": [0.1, 1.0]}, fit_params={"sample_weight": WEIGHTS}).report_
    assert report.fits_done == 0 and report.passes == 2.0


@pytest.mark.invariant("A scorer that may read the estimator receives a fitted one")
def test_a_callable_scorer_is_given_the_real_estimator():
    seen = []

    def score(estimator, X, y):
        seen.append(type(estimator))
        return estimator.coef_[0]

    report = both(Ridge(), {"alpha": [1.0, 2.0]}, scoring=score, refit=False).report_
    assert set(seen) == {Ridge} and report.fits_done == 10


def test_transformers_are_fitted_once_a_fold():
    pipe = make_pipeline(StandardScaler(), PCA(), SVC())
    grid = {"pca__n_components": [2, 3, 4], "svc__C": [0.1, 1, 10], "svc__gamma": [0.1, 0.01]}
    report = both(pipe, grid, X_CLASS, LABELS, cv=3).report_
    assert report.transformer_fits == 3 * (1 + 1)  # a scaler, and the PCA that holds each size, for each fold
    assert report.fits_done == 3 * 18
    two = both(pipe, grid, X_CLASS, LABELS, cv=2, n_jobs=2).report_
    assert two.transformer_fits == 2 * (1 + 1) and two.workers == 2


def test_a_family_behind_a_step_that_is_not_affine():
    pipe = make_pipeline(QuantileTransformer(), Ridge())
    grid = {"quantiletransformer__n_quantiles": [3, 5], "ridge__alpha": [0.1, 1.0, 10.0]}
    search = both(
        pipe, grid, cv=4, return_train_score=True, scoring=["r2", "neg_mean_absolute_error"], refit="r2"
    )
    assert search.report_.fits_done == 0 and search.report_.transformer_fits == 8


def test_steps_before_a_family_are_fitted_once_a_fold():
    """Also where the settings of a later step make several groups."""
    fitted = []

    class Counted(MinMaxScaler):
        def fit(self, X, y=None):
            fitted.append(1)
            return super().fit(X, y)

    pipe = Pipeline([("first", Counted()), ("second", PolynomialFeatures()), ("model", Ridge())])
    grid = {"second__degree": [1, 2], "model__alpha": [0.1, 1.0]}
    report = GridSearchCV(pipe, grid, cv=3, refit=False).fit(X, Y).report_
    assert len(fitted) == 3
    assert report.transformer_fits == 3 + 3 * 2


def test_the_report_names_the_output_of_steps_that_is_not_the_users_X():
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    letters = pd.DataFrame({"letter": np.array(list("abc"))[np.arange(len(Y)) % 3]})
    steps = FunctionTransformer(lambda frame: frame)  # which hides the columns
    search = GridSearchCV(make_pipeline(steps, *model), {"ridge__alpha": [0.1, 1.0]}).fit(letters, Y)
    (group,) = search.report_.groups
    assert list(group["left_to_sklearn"]) == [
        "the output of OneHotEncoder is a csr_matrix, not a dense array or DataFrame"
    ]


def test_the_report_says_why_settings_were_fitted_one_by_one():
    reason = "sharing='none'"
    text = str(GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, sharing="none").fit(X, Y).report_)
    assert text.splitlines()[1] == f"Ridge: 10 fits one by one, because {reason}."
    shared = str(GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(X, Y).report_)
    assert "one by one, because" not in shared


def test_the_report_has_the_first_reasons_only():
    reasons = [f"of {word}" for word in ("time", "space", "scores", "labels", "weights", "steps")]
    groups = [
        {"kind": "one by one", "estimator": "Ridge", "fits_requested": 5, "reason": reason}
        for reason in (*reasons, "of time")
    ]
    lines = str(Report(groups=groups, fits_requested=35)).splitlines()
    assert lines[1:4:2] == [
        "Ridge: 10 fits one by one, because of time.",
        "Ridge: 5 fits one by one, because of scores.",
    ]
    assert lines[5] == "report_.to_frame() has 2 more reasons."


def test_the_report_prints_every_number():
    search = GridSearchCV(Ridge(), {"alpha": [1.0, -1.0]}, verify=3, error_score=0.0)
    with pytest.warns(Warning, match="fits failed"):
        search.fit(X, Y)
    text = str(search.report_)
    assert repr(search.report_) == text
    for line in ("fits asked for", "fits made one by one", "passes over X by shared work", "seconds, total"):
        assert line in text
    assert "scores checked by scikit-learn" in text and "largest difference" in text


def test_verify_lists_both_scores():
    search = GridSearchCV(
        AFFINE,
        AFFINE_GRID,
        verify=4,
        return_train_score=True,
        scoring=["r2", "neg_mean_squared_error"],
        refit="r2",
    ).fit(X, Y)
    rows = search.report_.verification
    assert len(rows) == 4 * 2 * 2
    assert len({(str(r["params"]), r["split"]) for r in rows}) == 4
    for row in rows:
        j = search.cv_results_["params"].index(row["params"])
        key = f"split{row['split']}_{row['set']}_{row['scorer']}"
        assert row["shared"] == search.cv_results_[key][j]
        assert row["difference"] == abs(row["shared"] - row["sklearn"]) < 1e-9 * (1 + abs(row["sklearn"]))
    assert search.report_.largest_difference == max(r["difference"] for r in rows)


def test_verify_says_how_long_scikit_learns_fits_would_take():
    report = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, verify=4).fit(X, Y).report_
    assert all(row["seconds"] > 0 for row in report.verification)
    for row in report.verification:
        row["seconds"] = 0.5
    report.seconds = {"verify": 2.0, "refit": 1.0, "total": 3.25}
    said = "scikit-learn repeated 4 fits in 2 s, and would take about 5 s for all 10. This search took 0.25 s"
    assert said in str(report)
    report.workers = 2
    assert "would take about" not in str(report)


def test_verify_is_no_more_than_all():
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, verify=1000).fit(X, Y)
    assert len(search.report_.verification) == 5
    assert GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(X, Y).report_.largest_difference is None


@pytest.mark.invariant("verify finds a family with wrong answers")
@pytest.mark.parametrize("method", ["fit_many", "leave_out"])
def test_verify_finds_a_family_that_is_wrong(monkeypatch, method):
    """Training scores need the fits of each fold, which residuals of left-out rows do not."""
    family = family_of(Ridge)
    right = getattr(family, method)

    def wrong(estimator, settings, folded, *squares):
        for answers in right(estimator, settings, folded, *squares):
            numbers = answers.linear.at_origin if method == "fit_many" else answers.residuals
            numbers[:] += 100.0
            yield answers

    monkeypatch.setattr(family, method, wrong)
    options = {"verify": 5, "return_train_score": method == "fit_many"}
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, **options).fit(X, Y)
    assert search.report_.largest_difference > 0.01


def test_a_nan_is_the_largest_difference():
    report = Report(verification=[{"difference": 0.0}, {"difference": float("nan")}])
    assert np.isnan(report.largest_difference)


@pytest.mark.parametrize(("sharing", "done"), [("auto", 0), ("exact", 10), ("none", 10)])
def test_how_far_to_share(sharing, done, registered):
    class Converging(RowsFamily):
        result = "converged"

    registered(Converging())
    search = both(Shrunk(), {"factor": [0.1, 1.0]}, ours={"sharing": sharing})
    assert search.report_.fits_done == done
    reason = {"auto": "", "exact": "leaves out families that converge", "none": "sharing='none'"}[sharing]
    assert reason in str(search.plan(X, Y))


@pytest.mark.parametrize("sharing", spread(["none", "exact", "auto"], 2))
def test_sharing_does_not_change_numbers(sharing):
    search = both(AFFINE, AFFINE_GRID, ours={"sharing": sharing})
    assert search.report_.fits_done == (20 if sharing == "none" else 0)


def test_sharing_none_shares_no_steps():
    search = both(
        make_pipeline(StandardScaler(), RANDOM_LASSO), {"lasso__alpha": [1.0, 2.0]}, ours={"sharing": "none"}
    )
    assert search.report_.transformer_fits == 0  # those within scikit-learn's own fits are not counted
    (group,) = search.report_.groups
    assert group == {
        "kind": "one by one", "estimator": "Pipeline", "settings": 2, "candidates": (0, 1),
        "fits_requested": 10, "reason": "sharing='none'", "fits_undecided": 0, "decided_by": "",
        "left_to_sklearn": {},
    }  # fmt: skip


@pytest.mark.parametrize("limit", spread([1, 1000, "1kB", "512MB", np.int64(10**6)], 2))
def test_any_limit_gives_the_right_answers(limit):
    both(AFFINE, AFFINE_GRID, ours={"memory_limit": limit})
    both(make_pipeline(PolynomialFeatures(), Ridge()), {"ridge__alpha": [1, 2]}, ours={"memory_limit": limit})
    both(
        make_pipeline(StandardScaler(), RANDOM_LASSO), {"lasso__alpha": [1, 2]}, ours={"memory_limit": limit}
    )


@pytest.mark.parametrize(
    ("columns", "n_alphas", "options", "why"),
    [
        (400, 2, {}, "sharing would take longer here"),
        (150, 30, {"memory_limit": "300kB"}, "moments would need .* more than memory_limit"),
    ],
)
def test_steps_that_make_many_columns_make_moments_dear(columns, n_alphas, options, why, monkeypatch):
    monkeypatch.delattr(_single_fold, "moments_of_rows")  # would be a failure of shared work
    steps = RBFSampler(n_components=columns, random_state=0)
    grid = {"ridge__alpha": list(np.logspace(-1, 1, n_alphas))}
    report = both(make_pipeline(steps, Ridge()), grid, ours=options, refit=False).report_
    ((reason, n),) = report.left_to_sklearn.items()
    assert re.match(why, reason) and n == report.fits_done == 5 * n_alphas
    assert report.transformer_fits == 5  # those that the family asked for serve all fits that it left


@pytest.mark.parametrize(
    ("n_jobs", "model", "grid"),
    covering(
        [None, 2],
        [
            (RANDOM_LASSO, {"lasso__alpha": [0.1, 1.0]}),
            (Ridge(), {"ridge__alpha": [0.1, 1.0], "ridge__fit_intercept": [True, False]}),
        ],
        strength=1,
    ),
)
def test_outputs_that_do_not_fit_the_limit_are_counted(model, grid, n_jobs):
    """Two settings, or groups of a family, read the output of one scaler."""
    steps = make_pipeline(MinMaxScaler(clip=True), model)
    roomy = both(steps, grid, ours={"n_jobs": n_jobs}, cv=4).report_
    tight = both(steps, grid, ours={"n_jobs": n_jobs, "memory_limit": 1000}, cv=4).report_
    assert (roomy.transformer_fits, tight.transformer_fits) == (4, 8)
    assert (roomy.steps_repeated, tight.steps_repeated) == (0, 8)  # fit_transform and transform on 4 splits
    assert "done again" not in str(roomy) and "steps done again (memory_limit)" in str(tight)


def test_a_tiny_limit_is_named_in_the_plan():
    plan = GridSearchCV(Ridge(), {"alpha": [1.0]}, memory_limit=100).plan(X, Y)
    assert "more than memory_limit" in str(plan) and plan.groups[0].kind == "one by one"


@pytest.mark.parametrize("limit", [0, -1, "0MB", "-5MB", "much", "", "512 apples", "nan", "inf GB"])
def test_a_bad_limit_is_named(limit):
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, memory_limit=limit)
    with pytest.raises(ValueError, match=f"memory_limit should be .*got {limit!r}"):
        search.fit(X, Y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory_limit", 1e9),
        ("memory_limit", True),
        ("verify", -1),
        ("verify", 0.5),
        ("verify", True),
        ("sharing", None),
        ("sharing", "all"),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of GridSearchCV must be"):
        GridSearchCV(Ridge(), {"alpha": [1.0]}, **{name: value}).fit(X, Y)


@pytest.mark.invariant("Nothing is shared on an untested version of scikit-learn, and one warning says so")
def test_an_untested_sklearn_is_fitted_one_by_one(monkeypatch):
    monkeypatch.setattr(sklearn, "__version__", "1.42.0")
    warn_untested.cache_clear()
    search = GridSearchCV(AFFINE, AFFINE_GRID)
    with pytest.warns(
        UserWarning, match="tested with scikit-learn 1.7 to 1.9. With 1.42.0 it shares no work"
    ):
        plan = search.plan(X, Y)
    assert "scikit-learn 1.42.0 is not one of the tested versions 1.7, 1.8, 1.9" in str(plan)
    assert both(AFFINE, AFFINE_GRID).report_.fits_done == 20


def test_a_report_of_several_rounds_keeps_why_the_first_one_stopped():
    stopped, whole = Report(stopped="after 1 s"), Report()
    assert stopped.merged(whole).stopped == whole.merged(stopped).stopped == "after 1 s"


def test_the_largest_difference_of_an_engine_is_kept():
    report = Report()
    for difference in (None, 1e-9, float("nan"), 1e-3, 1e-6):
        report.note_difference(difference)
    assert report.engine_difference == 1e-3
