"""Fits of an X in chunks that are found not to be shared: they fail alone, with the reason and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.exceptions import FitFailedWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from manyfit.estimators import LogisticRegression as OwnLogistic
from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks._frames import blocks

rng = np.random.default_rng(0)
N = 240
X = rng.normal(size=(N, 3))
LABELS = (X[:, 0] + rng.logistic(size=N) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(zone=np.tile(["x", "y", "z"], N // 3))
Y = X[:, 0] + (FRAME["zone"] == "x") + rng.normal(size=N)
FEW = {"refit": False, "memory_limit": 4_500, "cv": 3}


# A tolerance that the loss does not show: scikit-learn's solver stops where its loss no longer falls


@pytest.mark.parametrize(("solver", "tol"), [("lbfgs", 1e-8), ("newton-cg", 1e-12), ("liblinear", 1e-8)])
def test_a_tolerance_below_the_rounding_of_the_loss_is_shared(solver, tol):
    model, grid = LogisticRegression(tol=tol, solver=solver), {"C": [0.1, 10.0]}
    options = {"scoring": ["neg_log_loss", "accuracy"], **FEW}
    search = GridSearchCV(model, grid, **options).fit(blocks(X, 60, LABELS))
    del options["memory_limit"]
    expected = SklearnSearch(model, grid, **options).fit(X, LABELS)
    for name in ("mean_test_neg_log_loss", "mean_test_accuracy"):
        np.testing.assert_allclose(search.cv_results_[name], expected.cv_results_[name], atol=1e-7)
    assert search.report_.fits_shared == 6
    in_memory = GridSearchCV(model, grid, **options).fit(X, LABELS)
    assert in_memory.report_.fits_done == 6  # scikit-learn stops where it does


def test_a_tolerance_is_loosened_for_its_own_setting_alone():
    """The loss of C=1e-10 is so steep that it shows no gradient below 1e-3; that of C=1 shows 1e-7."""
    options = {"scoring": "neg_log_loss", **FEW}
    search = GridSearchCV(LogisticRegression(tol=1e-8), {"C": [1e-10, 1.0]}, **options)
    search.fit(blocks(X, 60, LABELS))
    assert search.report_.fits_shared == 6
    tight = LogisticRegression(tol=1e-14, solver="newton-cholesky")
    expected = cross_val_score(tight, X, LABELS, cv=3, scoring="neg_log_loss")
    found = [search.cv_results_[f"split{i}_test_score"][1] for i in range(3)]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)


def test_our_own_estimator_is_refitted_to_it():
    own = OwnLogistic(tol=1e-8)
    search = GridSearchCV(own, {"C": [0.1, 10.0]}, memory_limit=4_500, cv=3).fit(blocks(X, 60, LABELS))
    expected = LogisticRegression(tol=1e-8, C=search.best_params_["C"]).fit(X, LABELS)
    np.testing.assert_allclose(search.best_estimator_.coef_, expected.coef_, atol=1e-6)


# Settings that are left after passes


def test_settings_that_are_left_fail_alone():
    """A trial sees that C=1e6 takes too many iterations; the other setting keeps its scores."""
    model, grid = LogisticRegression(max_iter=60), {"C": [1.0, 1e6]}
    wide = np.column_stack([X, X[:, :1] + 1e-3 * X[:, 1:2]]) * [1.0, 30.0, 0.1, 1.0]
    search = GridSearchCV(model, grid, return_train_score=True, scoring=["accuracy", "neg_log_loss"], **FEW)
    assert "a fit that is found not to be shared gets error_score" in str(
        search.plan(blocks(wide, 60, LABELS))
    )
    with (
        pytest.warns(FitFailedWarning, match=r"stop before it meets tol(.|\n)*Set sharing='optimum'"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(blocks(wide, 60, LABELS))
    alone = SklearnSearch(model, {"C": [1.0]}, cv=3).fit(wide, LABELS)
    found = search.cv_results_["mean_test_accuracy"]
    np.testing.assert_allclose(found, [alone.best_score_, np.nan])
    assert np.isnan(search.cv_results_["mean_train_neg_log_loss"]).tolist() == [False, True]
    assert (search.report_.fits_shared, search.report_.fits_done) == (3, 0)
    assert list(search.report_.left_to_sklearn.values()) == [3]
    assert "3 fits got error_score: they are not shared" in search.report_.advice[-1]
    assert search.report_.advice[-1].endswith("which best_index_ leaves out: 1 of 2")
    optimum = GridSearchCV(model, grid, sharing="optimum", **FEW).fit(blocks(wide, 60, LABELS))
    assert np.isfinite(optimum.cv_results_["mean_test_score"]).all()
    with pytest.raises(
        TypeError, match="3 of 6 fits cannot be made from chunks: scikit-learn's solver may stop"
    ):
        GridSearchCV(model, grid, error_score="raise", **FEW).fit(blocks(wide, 60, LABELS))


def _mixed(encoder, last):
    encode = ColumnTransformer([("zone", make_pipeline(encoder), ["zone"])], remainder=StandardScaler())
    return make_pipeline(encode, last)


@pytest.mark.parametrize("row", [0, 100, N - 1], ids=["first", "middle", "last"])
@pytest.mark.parametrize(
    ("encoder", "last", "scoring"),
    [
        (OneHotEncoder(), Ridge(), "r2"),
        (OneHotEncoder(sparse_output=False), Ridge(), ["r2", "neg_mean_absolute_error"]),
        (OrdinalEncoder(), LogisticRegression(tol=1e-6), ["accuracy", "neg_log_loss"]),
    ],
    ids=["one-hot", "two scores", "iterations"],
)
def test_a_category_of_one_fold_has_no_score_there_as_in_scikit_learn(row, encoder, last, scoring):
    """scikit-learn fits such a fold, and scores its training rows."""
    frame, y = FRAME.copy(), Y if isinstance(last, Ridge) else LABELS
    frame.loc[row, "zone"] = "rare"
    parameter = "ridge__alpha" if isinstance(last, Ridge) else "logisticregression__C"
    model, grid = _mixed(encoder, last), {parameter: [0.1, 10.0]}
    options = {"scoring": scoring, "cv": KFold(5), "return_train_score": True, "refit": False}
    where = "Scoring failed. The test scores of 2 fits are set to nan: column 'zone' holds an unknown cat"
    with pytest.warns(UserWarning, match=where), pytest.warns(UserWarning, match="non-finite"):
        search = GridSearchCV(model, grid, memory_limit=8_000, **options).fit(blocks(frame, 30, y))
    with pytest.warns(UserWarning, match="Scoring failed|non-finite"):
        expected = SklearnSearch(model, grid, **options).fit(frame, y)
    names = [name for name in expected.cv_results_ if name.startswith("split")]
    failed = [name for name in names if np.isnan(search.cv_results_[name]).any()]
    assert {tuple(name.split("_")[:2]) for name in failed} == {(f"split{row * 5 // N}", "test")}
    for name in names:
        found = search.cv_results_[name]
        tol = {"rtol": 1e-12} if isinstance(last, Ridge) else {"rtol": 0.0, "atol": 1e-5}
        np.testing.assert_allclose(found, expected.cv_results_[name], err_msg=name, **tol)
    assert (search.report_.fits_shared, search.report_.fits_done) == (8, 0)
    del options["return_train_score"]
    with pytest.raises(TypeError, match=r"2 of 10 fits cannot be made .*unless handle_unknown="):
        GridSearchCV(model, grid, error_score="raise", memory_limit=8_000, **options).fit(
            blocks(frame, 30, y)
        )


@pytest.mark.parametrize("row", [0, N - 1], ids=["first", "last"])
@pytest.mark.parametrize(
    ("encoder", "last"),
    [
        (OneHotEncoder(handle_unknown="warn"), Ridge()),
        (OneHotEncoder(handle_unknown="warn", min_frequency=2000), Ridge()),
        (OneHotEncoder(handle_unknown="infrequent_if_exist", drop="first", sparse_output=False), Ridge()),
        (OneHotEncoder(handle_unknown="ignore", drop="first"), LogisticRegression(tol=1e-6)),
        (OneHotEncoder(handle_unknown="warn", categories=[["x", "y"]]), Ridge()),
    ],
    ids=["warn", "infrequent", "dropped", "iterations", "given"],
)
def test_a_category_of_one_fold_of_which_scikit_learn_warns(row, encoder, last):
    frame, y = FRAME.copy(), Y if isinstance(last, Ridge) else LABELS
    frame.loc[row, "zone"] = "rare"
    parameter = "ridge__alpha" if isinstance(last, Ridge) else "logisticregression__C"
    model, grid = _mixed(encoder, last), {parameter: [0.1, 10.0]}
    options = {"cv": KFold(5), "return_train_score": True, "refit": False}
    with pytest.warns(UserWarning, match="Found unknown") as expected_warnings:
        expected = SklearnSearch(model, grid, **options).fit(frame, y)
    with pytest.warns(UserWarning, match="Found unknown") as warned:
        search = GridSearchCV(model, grid, memory_limit=8_000, **options).fit(blocks(frame, 30, y))
    assert {str(one.message) for one in warned} == {str(one.message) for one in expected_warnings}
    assert search.report_.fits_done == 0
    for name in (name for name in expected.cv_results_ if name.startswith("split")):
        tol = {"rtol": 1e-12} if isinstance(last, Ridge) else {"rtol": 0.0, "atol": 1e-5}
        np.testing.assert_allclose(search.cv_results_[name], expected.cv_results_[name], err_msg=name, **tol)


def test_training_rows_of_a_category_that_is_not_given_fail_the_fit():
    """All splits train on the rare category but the first, whose test row has it."""
    frame = FRAME.copy()
    frame.loc[0, "zone"] = "rare"
    model = _mixed(OneHotEncoder(categories=[["x", "y", "z"]]), Ridge())
    search = GridSearchCV(model, {}, refit=False, cv=KFold(5), memory_limit=8_000)
    with pytest.raises(TypeError, match="5 of 5 fits .* holds an unknown category"):
        search.fit(blocks(frame, 30, Y))


@pytest.mark.parametrize("last", [Ridge(), LogisticRegression(tol=1e-6)], ids=["moments", "iterations"])
@pytest.mark.parametrize("fold", [0, 2])
def test_a_fold_that_steps_cannot_read_fails_alone(last, fold):
    """Column a has numbers in the test rows of one fold only: SimpleImputer drops it there."""
    rows = range(fold * N // 5, (fold + 1) * N // 5)
    frame, y = FRAME.assign(a=FRAME["a"].where(FRAME.index.isin(rows))), Y
    y = Y if isinstance(last, Ridge) else LABELS
    model = make_pipeline(ColumnTransformer([("a", SimpleImputer(), ["a", "b"])]), last)
    options = {"cv": KFold(5), "refit": False}
    with (
        pytest.warns(FitFailedWarning, match="column 'a' has no number in the training rows"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search = GridSearchCV(model, {}, memory_limit=8_000, **options).fit(blocks(frame, 30, y))
    in_memory = GridSearchCV(model, {}, **options)
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        in_memory.fit(frame, y)
    for i in range(5):
        name = f"split{i}_test_score"
        expected = np.nan if i == fold else in_memory.cv_results_[name]
        np.testing.assert_allclose(search.cv_results_[name], expected, rtol=1e-10, err_msg=name)


# What is refused before anything is read


def _columns(step, *names):
    return make_pipeline(ColumnTransformer([("one", step, [*names])], remainder="drop"), Ridge())


SEVERAL = FRAME.assign(zone=pd.Series([*FRAME["zone"][:-1], 3], dtype=object))
EACH = FRAME.assign(zone=FRAME["zone"].mask(FRAME.index % (N // 2) == 0, FRAME.index.astype(str)))
GAP = FRAME.assign(b=FRAME["b"].mask(FRAME.index == 7))
INFINITE = FRAME.assign(b=FRAME["b"].mask(FRAME.index == 7, np.inf))


@pytest.mark.parametrize(
    ("frame", "model", "reason"),
    [
        (EACH, _columns(OneHotEncoder(), "zone"), "column 'zone' .* unless handle_unknown='ignore'"),
        (
            EACH,
            _columns(OrdinalEncoder(), "zone"),
            "column 'zone' .* unless handle_unknown='use_encoded_value'",
        ),
        (SEVERAL, _columns(OneHotEncoder(), "zone"), r"of several types \(column 'zone'\)"),
        (FRAME, _columns(StandardScaler(), "a", "zone"), "reads column 'zone', which is not numbers"),
        (
            FRAME,
            _columns("passthrough", "a", "zone"),
            "column 'zone' holds no numbers, and no step encodes it",
        ),
        (GAP, _columns(StandardScaler(), "a", "b"), "column 'b' has gaps that no step fills"),
        (INFINITE, _columns(SimpleImputer(), "a", "b"), r"X holds infinity \(column 'b'\)"),
        (FRAME, Ridge(), "X has columns that are no numbers: 'zone'"),
    ],
    ids=["one-hot", "ordinal", "several", "scaler", "object", "gap", "infinity", "frame"],
)
def test_a_refusal_names_the_column_and_does_not_say_to_leave_every_setting_out(frame, model, reason):
    search = GridSearchCV(model, {}, refit=False, cv=2, memory_limit=8_000)
    with pytest.raises(
        TypeError, match=f"{reason}.* Change the estimator or its parameters, make the search"
    ):
        search.fit(blocks(frame, 30, Y))


def test_some_settings_of_many_are_to_be_changed_or_left_out():
    search = GridSearchCV(Ridge(), {"alpha": [1.0, -1.0]}, **FEW)
    with pytest.raises(TypeError, match="3 of 6 .*alpha=-1.* Change these settings or leave them out"):
        search.fit(blocks(X, 60, Y))
    with pytest.raises(TypeError, match="3 of 3 .* Change the estimator or its parameters, make"):
        GridSearchCV(DecisionTreeRegressor(), {}, **FEW).fit(blocks(X, 60, Y))


WEIGHTLESS = np.where(LABELS == 1, 0.0, 1.0)
NEGATIVE = np.where(np.arange(N) == 7, -1.0, 1.0)


@pytest.mark.parametrize(
    ("data", "model", "weights", "message"),
    [
        (X, GaussianNB(), WEIGHTLESS, "a class has no weight in .* Give other weights"),
        (X, GaussianNB(), NEGATIVE, "sample_weight has values that are negative .* Give other weights"),
        (X.astype(np.float32), GaussianNB(), None, r'float32.* Pass .*X.astype\("float64"\)'),
    ],
    ids=["no weight", "negative", "float32"],
)
def test_what_the_data_refuse_is_said_first_and_with_its_remedy(data, model, weights, message):
    search = GridSearchCV(model, {}, **FEW | {"memory_limit": 6 * data.itemsize * 60})  # of blocks of 60 rows
    with pytest.raises(TypeError, match=f"^3 of 3 fits cannot be made from chunks: .*{message}"):
        search.fit(blocks(data, 60, LABELS), sample_weight=weights)


@pytest.mark.parametrize(
    ("y", "remedy"),
    [
        (pd.DataFrame({"y": LABELS}), "y is a frame or array of one column.* Pass y with one dimension"),
        (pd.Series(LABELS, dtype="category"), r"extension dtype category.* Pass y .*by y.to_numpy\(\)"),
    ],
    ids=["frame", "category"],
)
def test_a_y_that_is_not_read_is_refused_with_its_remedy(y, remedy):
    with pytest.raises(TypeError, match=remedy):
        GridSearchCV(LogisticRegression(), {}, **FEW).fit(blocks(X, 60), y)


def test_an_unknown_parameter_is_refused_in_scikit_learns_words():
    with pytest.raises(ValueError, match="Invalid parameter 'alhpa' for estimator Ridge"):
        GridSearchCV(Ridge(), {"alhpa": [1.0]}, **FEW).fit(blocks(X, 60, Y))


@pytest.mark.parametrize("seed", range(3))
def test_an_iterate_that_rounding_may_move_is_as_good_as_scikit_learns(seed):
    """A category of one row: one direction is nearly unknown, and conjugate gradients may stop elsewhere."""
    rng, n = np.random.default_rng(seed), 4000
    frame = pd.DataFrame({"a": rng.normal(size=n), "c": rng.integers(-3, 4, n)})
    frame.loc[0, "c"] = 99
    y = frame.a.to_numpy() + rng.normal(size=n) + (frame.c > 0)
    columns = make_column_transformer(
        (StandardScaler(), ["a"]), (OneHotEncoder(handle_unknown="ignore"), ["c"])
    )
    model, grid = make_pipeline(columns, Ridge()), {"ridge__alpha": [0.1, 10.0]}
    found = GridSearchCV(model, grid, refit=False, memory_limit="40kB").fit(blocks(frame, 400), y)
    wanted = SklearnSearch(model, grid, refit=False).fit(frame, y)
    for i in range(5):
        name = f"split{i}_test_score"
        np.testing.assert_allclose(found.cv_results_[name], wanted.cv_results_[name], rtol=1e-7)
