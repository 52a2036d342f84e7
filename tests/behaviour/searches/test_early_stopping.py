"""Fits that stop by the test part of their fold, against the same fits made by hand."""

from __future__ import annotations

import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import FitFailedWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
from tests._covering import covering, spread

X, Y = make_regression(240, 6, n_informative=2, noise=150.0, random_state=0)
X_CLASS, LABELS = make_classification(240, 8, n_informative=4, n_classes=3, flip_y=0.2, random_state=1)
WEIGHTS = np.random.default_rng(2).integers(1, 5, 240).astype(float)
FOLDS = KFold(3, shuffle=True, random_state=3)
GRID = {"learning_rate": [0.1, 0.5]}
XGB = {"n_estimators": 60, "early_stopping_rounds": 3, "n_jobs": 1}
LGBM = {"n_estimators": 60, "early_stopping_round": 3, "n_jobs": 1, "verbose": -1, "min_child_samples": 5}
HIST = {"max_iter": 60, "early_stopping": True, "n_iter_no_change": 3, "random_state": 0}
BOOSTERS = [
    XGBClassifier(**XGB), XGBRegressor(**XGB), LGBMClassifier(**LGBM), LGBMRegressor(**LGBM),
    HistGradientBoostingClassifier(**HIST), HistGradientBoostingRegressor(**HIST),
]  # fmt: skip


def named(model) -> str:
    return type(model).__name__


def data_for(model):
    return (X_CLASS, LABELS) if is_classifier(model) else (X, Y)


def fitted(model, X, y, train, test, weights=None):
    """A fit with the test rows as validation set, by the library alone; and its iterations."""
    rows = {} if weights is None else {"sample_weight": weights[train]}
    if isinstance(model, xgboost.XGBModel):
        own = {} if weights is None else {"sample_weight_eval_set": [weights[test]]}
        model.fit(X[train], y[train], eval_set=[(X[test], y[test])], verbose=False, **rows, **own)
        return model, model.best_iteration + 1
    if isinstance(model, lightgbm.LGBMModel):
        own = {} if weights is None else {"eval_sample_weight": [weights[test]]}
        model.fit(X[train], y[train], eval_X=X[test], eval_y=y[test], **rows, **own)
        return model, model.best_iteration_
    own = {} if weights is None else {"sample_weight_val": weights[test]}
    model.fit(X[train], y[train], X_val=X[test], y_val=y[test], **rows, **own)
    return model, model.n_iter_


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("weights", "model"), covering({"plain": None, "weights": WEIGHTS}.items(), BOOSTERS, strength=1)
)
def test_each_fit_is_the_librarys_own_with_the_test_part_as_validation_set(model, weights):
    X, y = data_for(model)
    search = GridSearchCV(model, GRID, cv=FOLDS, early_stopping="fold", return_train_score=True)
    search.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    results, scorer = search.cv_results_, get_scorer("accuracy" if is_classifier(model) else "r2")
    for c, params in enumerate(results["params"]):
        for i, (train, test) in enumerate(FOLDS.split(X)):
            own, n_iter = fitted(clone(model).set_params(**params), X, y, train, test, weights)
            assert results[f"split{i}_best_n_iter"][c] == n_iter < 60
            for role, rows in (("test", test), ("train", train)):
                of_score = {} if weights is None else {"sample_weight": weights[rows]}
                assert results[f"split{i}_{role}_score"][c] == scorer(own, X[rows], y[rows], **of_score)
    table = np.array([results[f"split{i}_best_n_iter"] for i in range(3)])
    assert_array_equal(results["mean_best_n_iter"], table.mean(axis=0))


@pytest.mark.parametrize("model", spread(BOOSTERS, 3))
def test_the_refit_makes_the_mean_of_the_best_iterations_and_does_not_stop(model):
    X, y = data_for(model)
    search = GridSearchCV(model, GRID, cv=FOLDS, early_stopping="fold").fit(X, y)
    n_iter = round(search.cv_results_["mean_best_n_iter"][search.best_index_])
    fixed = (
        {"max_iter": n_iter, "early_stopping": False}
        if "max_iter" in model.get_params()
        else {"n_estimators": n_iter}
    )
    for name in ("early_stopping_rounds", "early_stopping_round"):
        if name in model.get_params():
            fixed[name] = None
    own = clone(model).set_params(**search.best_params_, **fixed).fit(X, y)
    assert_array_equal(search.predict(X), own.predict(X))
    assert search.report_.refit_n_iter == n_iter
    assert search.best_params_.keys() == GRID.keys()


def test_steps_are_fitted_on_the_training_part_and_transform_the_test_part():
    gaps = np.where(np.random.default_rng(4).random(X.shape) < 0.2, np.nan, X)
    inner = Pipeline([("scale", StandardScaler()), ("model", LGBMRegressor(**LGBM))])
    pipeline = Pipeline([("fill", SimpleImputer()), ("rest", inner)])
    search = GridSearchCV(
        pipeline, {"rest__model__learning_rate": [0.1, 0.5]}, cv=FOLDS, early_stopping="fold"
    )
    search.fit(gaps, Y)
    for i, (train, test) in enumerate(FOLDS.split(X)):
        before = make_pipeline(SimpleImputer(), StandardScaler()).fit(gaps[train])
        rows = before.transform(gaps)
        own, n_iter = fitted(LGBMRegressor(**LGBM, learning_rate=0.1), rows, Y, train, test)
        assert search.cv_results_[f"split{i}_best_n_iter"][0] == n_iter
        assert search.cv_results_[f"split{i}_test_score"][0] == own.score(rows[test], Y[test])
    assert search.report_.transformer_fits == 6, "two steps on three splits serve both settings"


@pytest.mark.parametrize("sharing", ["auto", "none"])
@pytest.mark.parametrize("routing", [False, True])
def test_weights_of_the_test_part_reach_the_last_step(routing, sharing):
    with config_context(enable_metadata_routing=routing):
        model = XGBRegressor(**XGB)
        if routing:
            model.set_fit_request(sample_weight="w")
        pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
        if routing:
            pipeline.named_steps["scale"].set_fit_request(sample_weight=False)
        search = GridSearchCV(
            pipeline,
            {"model__max_depth": [1, 3]},
            cv=FOLDS,
            early_stopping="fold",
            sharing=sharing,
            scoring="r2",
            refit=False,
        )
        search.fit(X, Y, **{"w" if routing else "model__sample_weight": WEIGHTS})
    train, test = next(FOLDS.split(X))
    rows = StandardScaler().fit(X[train]).transform(X)
    _, n_iter = fitted(XGBRegressor(**XGB, max_depth=3), rows, Y, train, test, WEIGHTS)
    _, unweighted = fitted(XGBRegressor(**XGB, max_depth=3), rows, Y, train, test)
    assert search.cv_results_["split0_best_n_iter"][1] == n_iter != unweighted


@pytest.mark.parametrize("model", [BOOSTERS[0], BOOSTERS[2], BOOSTERS[4]], ids=named)
def test_test_rows_of_a_class_that_training_lacks_count_in_scores_only(model):
    labels = LABELS.copy()
    labels[:4] = 3  # all in the test part of the first split
    splits = [(np.arange(80, 240), np.arange(80)), (np.arange(160), np.arange(160, 240))]
    search = GridSearchCV(model, GRID, cv=splits, early_stopping="fold", refit=False).fit(X_CLASS, labels)
    own, n_iter = fitted(
        clone(model).set_params(learning_rate=0.1), X_CLASS, labels, splits[0][0], np.arange(4, 80)
    )
    assert search.cv_results_["split0_best_n_iter"][0] == n_iter
    assert search.cv_results_["split0_test_score"][0] == own.score(X_CLASS[:80], labels[:80])


@pytest.mark.parametrize("names", [np.array(["a", "b", "c"]), np.array([2, 1, 7])], ids=["texts", "integers"])
def test_lightgbm_validates_labels_of_any_kind_by_its_classes(names):
    labels = names[LABELS]
    search = GridSearchCV(BOOSTERS[2], GRID, cv=FOLDS, early_stopping="fold")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X_CLASS, labels)
    encoded = np.unique(labels, return_inverse=True)[1]
    for i, (train, test) in enumerate(FOLDS.split(X)):
        own, n_iter = fitted(clone(BOOSTERS[2]).set_params(learning_rate=0.5), X_CLASS, encoded, train, test)
        assert search.cv_results_[f"split{i}_best_n_iter"][1] == n_iter
        assert search.cv_results_[f"split{i}_test_score"][1] == own.score(X_CLASS[test], encoded[test])


def test_the_refit_of_lightgbm_makes_its_iterations_whatever_name_limits_them():
    given = {name: value for name, value in LGBM.items() if name != "n_estimators"}
    search = GridSearchCV(
        LGBMRegressor(**given, num_iterations=60), GRID, cv=FOLDS, early_stopping="fold"
    ).fit(X, Y)
    assert search.best_estimator_.booster_.num_trees() == search.report_.refit_n_iter < 60


def worst_error(y_true, y_score):
    return float(np.abs(y_true - y_score).max())


def test_a_metric_of_ones_own_decides():
    search = GridSearchCV(
        XGBRegressor(**XGB, eval_metric=worst_error), GRID, cv=FOLDS, early_stopping="fold"
    ).fit(X, Y)
    train, test = next(FOLDS.split(X))
    own = XGBRegressor(**XGB, eval_metric=worst_error, learning_rate=0.1)
    _, n_iter = fitted(own, X, Y, train, test)
    _, by_default = fitted(XGBRegressor(**XGB, learning_rate=0.1), X, Y, train, test)
    assert search.cv_results_["split0_best_n_iter"][0] == n_iter != by_default


def worst_of_lightgbm(y_true, y_pred):
    return "worst", worst_error(y_true, y_pred), False


def test_a_metric_may_be_a_parameter_of_the_fit():
    model = LGBMRegressor(**LGBM, metric="None")
    search = GridSearchCV(model, GRID, cv=FOLDS, early_stopping="fold")
    search.fit(X, Y, eval_metric=worst_of_lightgbm)
    train, test = next(FOLDS.split(X))
    own = clone(model).set_params(learning_rate=0.1)
    own.fit(X[train], Y[train], eval_X=X[test], eval_y=Y[test], eval_metric=worst_of_lightgbm)
    assert search.cv_results_["split0_best_n_iter"][0] == own.best_iteration_


def test_a_callback_of_xgboost_may_stop():
    stop = xgboost.callback.EarlyStopping(rounds=2, min_delta=1.0, save_best=True)
    search = GridSearchCV(
        XGBRegressor(n_estimators=60, callbacks=[stop]), GRID, cv=FOLDS, early_stopping="fold"
    )
    search.fit(X, Y)
    assert search.cv_results_["mean_best_n_iter"].max() < 60
    assert search.best_estimator_.callbacks is None
    assert search.best_estimator_.get_booster().num_boosted_rounds() == search.report_.refit_n_iter


def test_n_estimators_is_the_most_iterations_of_each_setting():
    search = GridSearchCV(
        LGBMRegressor(**LGBM), {"n_estimators": [2, 60]}, cv=FOLDS, early_stopping="fold"
    ).fit(X, Y)
    assert_array_equal(search.cv_results_["mean_best_n_iter"][0], 2)
    assert search.cv_results_["mean_best_n_iter"][1] > 2
    assert search.report_.family_fits == 0


def test_frames_keep_their_columns():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = pd.Categorical(np.where(X[:, 0] > 0, "up", "down"))
    search = GridSearchCV(LGBMRegressor(**LGBM), GRID, cv=FOLDS, early_stopping="fold").fit(frame, Y)
    train, test = next(FOLDS.split(X))
    own = LGBMRegressor(**LGBM, learning_rate=0.1)
    own.fit(frame.iloc[train], Y[train], eval_X=frame.iloc[test], eval_y=Y[test])
    assert search.cv_results_["split0_best_n_iter"][0] == own.best_iteration_
    assert search.cv_results_["split0_test_score"][0] == own.score(frame.iloc[test], Y[test])


@pytest.mark.slow
@pytest.mark.parametrize("model", [BOOSTERS[1], make_pipeline(StandardScaler(), BOOSTERS[3])], ids=named)
def test_processes_of_joblib_give_the_same(model):
    grid = {("" if isinstance(model, XGBRegressor) else "lgbmregressor__") + "max_depth": [1, 2, 3]}
    one, two = (
        GridSearchCV(model, grid, cv=FOLDS, early_stopping="fold", n_jobs=n, refit=False).fit(X, Y)
        for n in (None, 2)
    )
    for name in ("split0_best_n_iter", "split2_best_n_iter", "split1_test_score"):
        assert_array_equal(one.cv_results_[name], two.cv_results_[name])


def test_a_checkpoint_has_the_iterations(tmp_path):
    given = {"cv": FOLDS, "early_stopping": "fold", "checkpoint": tmp_path / "search"}
    first = GridSearchCV(XGBRegressor(**XGB, random_state=0), GRID, **given).fit(X, Y)
    again = GridSearchCV(XGBRegressor(**XGB, random_state=0), GRID, **given).fit(X, Y)
    assert again.report_.fits_restored == 6
    assert_array_equal(first.cv_results_["mean_best_n_iter"], again.cv_results_["mean_best_n_iter"])
    with pytest.raises(ValueError, match="early_stopping"):
        GridSearchCV(XGBRegressor(**XGB, random_state=0), GRID, **given | {"early_stopping": None}).fit(X, Y)


def test_a_failed_fit_has_no_iterations():
    grid = {"max_depth": [2, -1]}
    search = GridSearchCV(XGBRegressor(**XGB), grid, cv=FOLDS, early_stopping="fold")
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        search.fit(X, Y)
    assert np.isnan(search.cv_results_["mean_best_n_iter"][1])
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert search.best_index_ == 0


def test_plan_and_report_say_that_scores_are_optimistic():
    search = RandomizedSearchCV(XGBRegressor(**XGB), GRID, n_iter=2, cv=FOLDS, early_stopping="fold")
    plan = search.plan(X, Y)
    assert "scores are optimistic" in str(plan) and "scores are optimistic" in plan._repr_html_()
    report = search.fit(X, Y).report_
    assert "scores are optimistic" in str(report)
    assert f"iterations of the refit, the mean over splits  {report.refit_n_iter}" in str(report)


def test_without_the_option_nothing_changes():
    search = GridSearchCV(LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1), GRID, cv=FOLDS).fit(X, Y)
    assert "mean_best_n_iter" not in search.cv_results_
    assert search.report_.refit_n_iter is None
    assert "optimistic" not in str(search.report_)


@pytest.mark.parametrize(
    ("model", "grid", "message"),
    [
        (Ridge(), {"alpha": [1.0]}, "got Ridge"),
        (RandomForestClassifier(), {"max_depth": [1]}, "got RandomForestClassifier"),
        (XGBRegressor(), {"max_depth": [1]}, "Set its early_stopping_rounds"),
        (LGBMRegressor(), {"max_depth": [1]}, "Set its early_stopping_round"),
        (HistGradientBoostingRegressor(), {"max_depth": [1]}, "Set its early_stopping=True"),
        (Pipeline([("m", XGBRegressor(**XGB))]), {"m": [XGBRegressor(**XGB), Ridge()]}, "got Ridge"),
    ],
)
def test_settings_that_cannot_stop_are_refused_before_any_fit(model, grid, message):
    search = GridSearchCV(model, grid, early_stopping="fold")
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y)
    with pytest.raises(ValueError, match=message):
        search.plan(X, Y)


@pytest.mark.filterwarnings("ignore:`XGBRFClassifier` is deprecated:FutureWarning")
def test_forests_of_xgboost_are_refused():
    forest = getattr(xgboost, "XGBRFClassifier", RandomForestClassifier)()  # XGBoost is about to remove it
    with pytest.raises(ValueError, match=f"got {type(forest).__name__}"):
        GridSearchCV(forest, {"max_depth": [1]}, early_stopping="fold").fit(X, Y)


def test_a_validation_set_of_ones_own_is_refused():
    search = GridSearchCV(XGBRegressor(**XGB), GRID, early_stopping="fold")
    with pytest.raises(ValueError, match="got eval_set too"):
        search.fit(X, Y, eval_set=[(X, Y)])


def test_a_callback_that_stops_is_refused_before_the_fits_and_others_are_not():
    search = GridSearchCV(LGBMRegressor(**LGBM), GRID, cv=FOLDS, early_stopping="fold")
    with pytest.raises(ValueError, match="validation set that stops by callbacks need"):
        search.fit(X, Y, callbacks=[lightgbm.early_stopping(3, verbose=False)])
    assert search.fit(X, Y, callbacks=[lightgbm.log_evaluation(0)]).report_.refit_n_iter > 0


def test_other_values_of_the_option_are_scikit_learns_error():
    with pytest.raises(ValueError, match="'early_stopping' parameter"):
        GridSearchCV(XGBRegressor(**XGB), GRID, early_stopping=True).fit(X, Y)


def test_stratified_folds_and_several_scorers():
    cv = StratifiedKFold(3)
    search = GridSearchCV(
        XGBClassifier(**XGB), GRID, cv=cv, early_stopping="fold", scoring=["accuracy", "neg_log_loss"],
        refit="neg_log_loss", verify=2,
    ).fit(X_CLASS, LABELS)  # fmt: skip
    assert search.report_.largest_difference == 0.0
    train, test = next(cv.split(X_CLASS, LABELS))
    own, n_iter = fitted(XGBClassifier(**XGB, learning_rate=0.1), X_CLASS, LABELS, train, test)
    assert search.cv_results_["split0_best_n_iter"][0] == n_iter
    expected = get_scorer("neg_log_loss")(own, X_CLASS[test], LABELS[test])
    assert search.cv_results_["split0_test_neg_log_loss"][0] == expected
