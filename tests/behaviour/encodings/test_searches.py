"""Options and parts of a search whose columns are encoded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from manyfit.families.smooth import _cost
from manyfit.model_selection import GridSearchCV, cross_validate
from tests._covering import spread
from tests._same_results import both

N = 150
rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"a": rng.normal(size=N), "b": rng.lognormal(size=N), "c": rng.choice(["x", "y", "z"], N)}
)
FRAME.loc[rng.random(N) < 0.2, "a"] = np.nan
Y = FRAME["b"].to_numpy() + (FRAME["c"] == "x") + rng.normal(size=N)
COLUMNS = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
        ("words", OneHotEncoder(sparse_output=False), ["c"]),
    ]
)
MODEL = make_pipeline(COLUMNS, Ridge())
RIDGE = {"ridge__alpha": [0.1, 1.0, 10.0]}


def test_steps_in_nested_pipelines_are_encoded():
    model = Pipeline([("inner", Pipeline([("columns", COLUMNS)])), ("model", Ridge())])
    report = both(model, {"model__alpha": [0.1, 1.0]}, FRAME, Y).report_
    assert (report.fits_done, report.transformer_fits, report.transformer_fits_saved) == (0, 0, 0)


@pytest.mark.parametrize("options", spread([{"n_jobs": 2}, {"verify": 15}, {"sharing": "exact"}], 2))
def test_options_of_searches(options):
    report = both(MODEL, RIDGE, FRAME, Y, ours=options).report_
    assert (report.fits_done, report.transformer_fits, report.passes) == (0, 0, 1)
    assert report.largest_difference is None or report.largest_difference < 1e-12


def test_a_search_continues_from_its_checkpoint_of_the_same_frame_only(tmp_path):
    def search():
        return GridSearchCV(MODEL, RIDGE, checkpoint=tmp_path / "scores")

    first = search().fit(FRAME, Y)
    again = search().fit(FRAME.copy(), Y)
    assert (first.report_.fits_restored, again.report_.fits_restored) == (0, 15)
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], first.cv_results_["mean_test_score"])
    with pytest.raises(ValueError, match="another search"):
        search().fit(FRAME.assign(b=0.0), Y)


def test_an_encoding_that_does_not_fit_is_left_to_shared_steps():
    report = both(MODEL, RIDGE, FRAME, Y, ours={"memory_limit": 8 * N * 4}).report_
    assert report.transformer_fits > 0


def test_settings_that_are_not_linear_stand_beside_those_that_are():
    clipped = make_pipeline(SimpleImputer(), MinMaxScaler(clip=True))
    grid = {"columntransformer__numbers": [SimpleImputer(), clipped], **RIDGE}
    search = both(MODEL, grid, FRAME, Y)
    kinds = {group.strategy.kind: group.fits_requested for group in search.plan(FRAME, Y).groups}
    assert kinds == {"moments": 15, "shared in folds": 15}
    assert search.report_.transformer_fits == 5 * 3  # imputer, scaler, encoder


@pytest.mark.parametrize("last", [Ridge(), LogisticRegression(tol=1e-8)])
@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_without_splits_the_error_is_scikit_learns(last, error_score):
    for cls in (model_selection.GridSearchCV, GridSearchCV):
        with pytest.raises(ValueError, match="No fits were performed"):
            cls(make_pipeline(COLUMNS, last), {}, cv=[], error_score=error_score).fit(FRAME, Y > 1.0)


@pytest.mark.filterwarnings(
    "ignore:Scoring failed:UserWarning", "ignore:One or more of the test scores:UserWarning"
)
@pytest.mark.parametrize("error_score", spread([np.nan, -1.0], 1))
def test_unknown_categories_score_as_errors_do(error_score):
    X = FRAME.assign(c=np.where(np.arange(N) < 20, "new", FRAME["c"]))
    search = both(MODEL, RIDGE, X, Y, error_score=error_score, refit=False, may_fail=True)
    assert search.report_.fits_done == 3
    np.testing.assert_array_equal(search.cv_results_["split0_test_score"], error_score)


def test_a_transformer_that_scikit_learn_refuses_fails_with_its_error():
    bad = make_pipeline(ColumnTransformer([("numbers", SimpleImputer(), ["absent"])]), Ridge())
    for cls in (model_selection.GridSearchCV, GridSearchCV):
        with pytest.raises(ValueError, match="absent|not a column"):
            cls(bad, RIDGE, error_score="raise").fit(FRAME, Y)


def test_weights_of_iterating_fits(monkeypatch):
    monkeypatch.setattr(_cost, "FIXED", 0.0)
    model = make_pipeline(COLUMNS, LogisticRegression(tol=1e-8, max_iter=1000))
    grid = {"logisticregression__C": [0.1, 1.0, 10.0]}
    weights = {"logisticregression__sample_weight": np.linspace(0.0, 2.0, N)}
    search = both(
        model, grid, FRAME, Y > 1.0, weights, ours={"sharing": "optimum"}, scoring="neg_log_loss",
        refit=False, compare={"rtol": 1e-6},
    )  # fmt: skip
    assert search.report_.fits_done == 0


@pytest.mark.filterwarnings(
    "ignore:Scoring failed:UserWarning", "ignore:One or more of the test scores:UserWarning"
)
def test_scikit_learn_fits_the_one_fold_that_iterations_leave(monkeypatch):
    """The last fold tests a category that it does not train on."""
    monkeypatch.setattr(_cost, "FIXED", 0.0)
    model = make_pipeline(COLUMNS, LogisticRegression(tol=1e-8, max_iter=1000))
    X = FRAME.assign(c=np.where(np.arange(N) >= N - 3, "new", FRAME["c"]))
    search = both(
        model, {"logisticregression__C": [0.1, 1.0]}, X, Y > 1.0, ours={"sharing": "optimum"}, refit=False,
        scoring="neg_log_loss", cv=model_selection.KFold(5), compare={"rtol": 1e-6}, may_fail=True,
    )  # fmt: skip
    assert (search.report_.fits_shared, search.report_.fits_done) == (8, 2)


def test_functions_that_validate():
    ours = cross_validate(MODEL, FRAME, Y, return_train_score=True)
    theirs = model_selection.cross_validate(MODEL, FRAME, Y, return_train_score=True)
    for part in ("test_score", "train_score"):
        np.testing.assert_allclose(ours[part], theirs[part], rtol=1e-12)


@pytest.mark.parametrize(
    "step", [StandardScaler(), PCA(2), VarianceThreshold()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("numbers", [StandardScaler(), "passthrough"])
def test_a_branch_that_reads_moments_beside_one_that_does_not(step, numbers):
    """The columns of the other branch are asked for, too, while the search is planned."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.normal(size=300), "b": rng.normal(size=300), "c": rng.choice(list("xyz"), 300)}
    )
    y = 2.0 * X.a + (X.c == "x") + rng.normal(size=300)
    inner = make_pipeline(OneHotEncoder(sparse_output=False), step)
    columns = ColumnTransformer([("numbers", numbers, ["a", "b"]), ("texts", inner, ["c"])])
    model, grid = make_pipeline(columns, Ridge()), {"ridge__alpha": np.logspace(-2, 2, 10)}
    search = GridSearchCV(model, grid).fit(X, y)
    assert search.report_.fits_done == 0
    theirs = model_selection.GridSearchCV(model, grid).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-10
    )
