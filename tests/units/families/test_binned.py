"""Boosting on histograms: fits with bins that another fit has made grow the same trees, to the bit."""

from __future__ import annotations

import warnings
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.model_selection
import xgboost
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from manyfit._compat import keep_bins, keep_lightgbm_bins, keep_xgboost_bins
from manyfit.estimators import family_of
from manyfit.folds import FoldArrays, SingleFold, Unsupported
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests._same_results import both

rng = np.random.default_rng(0)
N, TRAIN = 240, 180
CODES = rng.integers(0, 3, N)
X = rng.normal(size=(N, 6)) + 0.5 * CODES[:, None]
COUNTS = rng.poisson(2.0, N).astype(float)
X[::9, 2] = np.nan
X[:, 3] = CODES ^ (rng.random(N) < 0.1)  # few values, as of categories
X[:, 4] = 7.0
WEIGHTS = rng.random(N) * (rng.random(N) < 0.9)
SPARSE = sp.random(N, 9, 0.3, format="csr", random_state=0)

XGB: dict[str, Any] = {"n_jobs": 1, "n_estimators": 4}
LGBM: dict[str, Any] = {"n_jobs": 1, "verbose": -1, "min_child_samples": 4, "n_estimators": 4}
XGB_GRID = {
    "max_depth": [2, 5],
    "learning_rate": [0.1, 0.7],
    "min_child_weight": [1, 4],
    "grow_policy": ["depthwise", "lossguide"],
    "max_delta_step": [0, 1],
}
XGB_DRAWS = {
    "subsample": [0.4, 1.0],
    "colsample_bynode": [0.5, 1.0],
    "reg_lambda": [0.0, 9.0],
    "gamma": [0, 2],
}
LGBM_GRID = {"num_leaves": [3, 9], "learning_rate": [0.1, 0.7], "reg_alpha": [0.0, 2.0], "max_depth": [-1, 2]}
LGBM_DRAWS = {
    "subsample": [0.4, 0.9],
    "subsample_freq": [0, 1],
    "colsample_bytree": [0.5, 1.0],
    "min_split_gain": [0.0, 1.0],
    "min_child_weight": [1e-3, 5.0],
}
HIST_GRID = {
    "learning_rate": [0.1, 0.7],
    "max_leaf_nodes": [3, None],
    "max_depth": [None, 2],
    "min_samples_leaf": [1, 20],
    "l2_regularization": [0.0, 5.0],
}
CASES = [
    (XGBClassifier(**XGB), XGB_GRID),
    (XGBClassifier(**XGB, max_bin=7, random_state=3), XGB_DRAWS),
    (XGBRegressor(**XGB, objective="count:poisson"), XGB_GRID),
    (XGBRegressor(**XGB, feature_types=["q", "q", "q", "c", "q", "q"], enable_categorical=True), XGB_GRID),
    (XGBRegressor(**XGB, objective="reg:absoluteerror", num_parallel_tree=2), XGB_DRAWS),
    (LGBMClassifier(**LGBM), LGBM_GRID),
    (LGBMClassifier(**LGBM, class_weight="balanced", random_state=1), LGBM_DRAWS),
    (LGBMClassifier(**LGBM, data_sample_strategy="goss", min_data_in_bin=5), LGBM_GRID),
    (LGBMRegressor(**LGBM, objective="poisson", max_bin=7), LGBM_GRID),
    (LGBMRegressor(**LGBM, boosting_type="rf", subsample=0.5, subsample_freq=1), LGBM_GRID),
    (LGBMRegressor(**LGBM, linear_tree=True, extra_trees=True), LGBM_DRAWS),
    (LGBMRegressor(**LGBM, monotone_constraints=[1, 0, 0, 0, 0, -1]), LGBM_GRID),
    (HistGradientBoostingClassifier(max_iter=4, max_bins=9, categorical_features=[3]), HIST_GRID),
    (HistGradientBoostingClassifier(max_iter=4, class_weight="balanced"), HIST_GRID),
    (HistGradientBoostingRegressor(max_iter=9, early_stopping=True, random_state=2), HIST_GRID),
    (HistGradientBoostingRegressor(max_iter=4, loss="poisson", max_features=0.5, random_state=1), HIST_GRID),
]


def named(value: Any) -> str:
    return type(value).__name__ if hasattr(value, "fit") else ""


def keeper(model: Any, kept: dict[str, Any]) -> Any:
    if isinstance(model, xgboost.XGBModel):
        return keep_xgboost_bins(model, kept)
    return (keep_lightgbm_bins if isinstance(model, lightgbm.LGBMModel) else keep_bins)(model, kept)


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    ("weights", "model", "grid"), covering([None, WEIGHTS], CASES, strength=1), ids=named
)
def test_fits_with_kept_bins_are_equal_to_the_bit(model, grid, weights):
    y, family = CODES if is_classifier(model) else COUNTS, family_of(type(model))
    assert set(grid) <= family.free and family.makes_bins(model)
    given = model.get_params()
    settings = [
        {name: given[name] for name in family.free} | setting for setting in list(ParameterGrid(grid))[::3]
    ]
    for setting in settings:
        family.check(model, [setting])
    weight = None if weights is None else weights[:TRAIN]
    fold = FoldArrays(X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:], weight, X[:TRAIN], y[:TRAIN], y[TRAIN:])
    (answers,) = family.fit_many(model, settings, SingleFold(fold))
    chosen = [j for j in range(len(settings)) if j not in answers.refused]
    assert answers.fits_made == len(chosen) >= 5
    found = answers.subset(chosen).respond("test", fold)
    fit_params = {} if weights is None else {"sample_weight": weight}
    distinct = set()
    for place, j in enumerate(chosen):
        alone = clone(model).set_params(**settings[j]).fit(X[:TRAIN], y[:TRAIN], **fit_params)
        for method, responses in found.items():
            expected = getattr(alone, method)(X[TRAIN:])
            assert_array_equal(responses[place], expected, err_msg=f"{method} {settings[j]}")
        distinct.add(responses[place].tobytes())
    assert len(distinct) > 3, "settings differ"


@pytest.mark.parametrize(
    "model",
    [XGBRegressor(**XGB), LGBMRegressor(**LGBM), HistGradientBoostingRegressor(max_iter=4)],
    ids=named,
)
def test_bins_are_made_once_and_the_fitted_model_is_its_librarys(model, monkeypatch):
    made: list[Any] = []
    for cls, name in (
        (xgboost.QuantileDMatrix, "__init__"),
        (lightgbm.Dataset, "__init__"),
        (_BinMapper, "fit_transform"),
    ):
        real = getattr(cls, name)
        monkeypatch.setattr(
            cls, name, lambda *args, real=real, **given: (made.append(1), real(*args, **given))[1]
        )
    kept: dict[str, Any] = {}
    for rate in (0.1, 0.5, 0.9):
        own = clone(model).set_params(learning_rate=rate)
        with keeper(own, kept):
            own.fit(X, COUNTS)
        assert type(own) is type(model)
        assert not {"_create_dmatrix", "_bin_data", "fit"} & vars(own).keys()
    assert len(made) == 1
    with keeper(own, {}):
        own.fit(X, COUNTS)
    assert len(made) == 2, "the trap counts"


def test_settings_with_other_bins_do_not_share_them():
    grid = {"max_bin": [4, 30], "learning_rate": [0.1, 0.5]}
    for model in (XGBRegressor(**XGB), LGBMRegressor(**LGBM)):
        search = both(model, grid, X, COUNTS, cv=3)
        assert len(search.plan(X, COUNTS).groups) == 2
    grid = {"min_child_samples": [2, 60], "learning_rate": [0.1, 0.5]}
    both(LGBMRegressor(**LGBM), grid, X, COUNTS, cv=3)


@pytest.mark.parametrize(
    "model",
    [
        XGBRegressor(**XGB, tree_method="exact"),
        XGBRegressor(**XGB, tree_method="approx"),
        XGBRegressor(**XGB, objective=lambda y, found: (found - y, np.ones_like(y))),
        LGBMRegressor(**LGBM, objective=lambda y, found: (found - y, np.ones_like(y))),
    ],
    ids=["exact", "approx", "own of XGBoost", "own of LightGBM"],
)
def test_fits_without_bins_to_share_are_left_alone(model):
    search = both(model, {"learning_rate": [0.1, 0.5]}, X, COUNTS, cv=3)
    assert search.report_.fits_shared == 0
    search = both(model, {"learning_rate": [0.1, 0.5], "n_estimators": [2, 4]}, X, COUNTS, cv=3)
    assert search.report_.fits_shared == 12 and search.report_.fits_done == 6


@pytest.mark.parametrize("device", [{"device": "cuda"}, {"device_type": "gpu"}])
def test_bins_of_a_gpu_are_not_kept(device):
    model = XGBRegressor(**device) if "device" in device else LGBMRegressor(**device)
    assert not family_of(type(model)).makes_bins(model)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "model",
    [XGBClassifier(**XGB), LGBMClassifier(**LGBM), HistGradientBoostingClassifier(max_iter=4)],
    ids=named,
)
def test_a_setting_that_fails_leaves_the_others_shared(model):
    of_xgboost = isinstance(model, XGBClassifier)
    grid = {"subsample" if of_xgboost else "learning_rate": [0.3, 0.6, -1.0], "max_depth": [2, 3]}
    found = []
    for cls in (GridSearchCV, sklearn.model_selection.GridSearchCV):
        failed = pytest.warns(FitFailedWarning, match="6 fits failed")
        with pytest.warns(UserWarning, match="non-finite"), failed:
            found.append(cls(model, grid, cv=3, refit=False).fit(X, CODES))
    scores = [search.cv_results_["mean_test_score"] for search in found]
    assert_array_equal(*scores)
    assert np.isnan(scores[0]).sum() == 2 and found[0].report_.fits_shared == 12


def test_a_warning_about_the_bins_is_given_for_every_fit():
    model, grid = LGBMRegressor(**LGBM, categorical_feature=[3]), {"learning_rate": [0.3, 0.6]}
    found = []
    for cls in (GridSearchCV, sklearn.model_selection.GridSearchCV):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            cls(model, grid, cv=3, refit=False).fit(X, COUNTS)
        found.append([str(one.message) for one in given])
    assert len(found[0]) == len(found[1]) >= 6


@pytest.mark.parametrize("model", [XGBRegressor(**XGB), LGBMRegressor(**LGBM)], ids=named)
def test_sparse_rows_and_pipelines(model):
    grid = {"learning_rate": [0.1, 0.5], "subsample": [0.5, 1.0], "n_estimators": [2, 4]}
    search = both(model, grid, SPARSE, COUNTS, cv=3)
    assert (search.report_.fits_done, search.report_.fits_shared) == (12, 24)
    pipeline = make_pipeline(StandardScaler(), model)
    behind = {f"{type(model).__name__.lower()}__{name}": values for name, values in grid.items()}
    search = both(pipeline, behind, X.astype(np.float32), COUNTS, cv=3, return_train_score=True)
    assert search.report_.fits_shared == 24


@pytest.mark.parametrize(
    "model", [XGBRegressor(**XGB, enable_categorical=True), LGBMRegressor(**LGBM)], ids=named
)
def test_frames(model):
    numbers = pd.DataFrame(X, columns=list("abcdef"))
    search = both(model, {"learning_rate": [0.1, 0.5], "n_estimators": [2, 4]}, numbers, COUNTS, cv=3)
    assert search.report_.fits_shared == 12 and search.report_.fits_done == 6
    mixed = numbers.assign(d=pd.Categorical.from_codes(CODES, ["p", "q", "r"]))
    mixed["e"] = mixed["e"] > 0
    mixed.loc[::7, "d"] = np.nan
    mixed.loc[1, "f"] = np.nan
    options = {"cv": 3, "return_train_score": True}
    search = both(model, {"learning_rate": [0.1, 0.5], "n_estimators": [2, 4]}, mixed, COUNTS, **options)
    assert search.report_.fits_shared == 12 and search.report_.fits_done == 6
    sorted_rows = mixed.sort_values("d", ignore_index=True)  # the test rows have categories of their own
    search = both(model, {"n_estimators": [2, 4, 7]}, sorted_rows, COUNTS, cv=3)
    assert search.report_.fits_shared == 9 and search.report_.fits_done == 3
    texts = mixed.assign(d=mixed["d"].astype("string"))
    search = GridSearchCV(model, {"n_estimators": [2, 4]}, cv=3, error_score=0.0, refit=False)
    with pytest.raises(ValueError, match="All the 6 fits failed"):
        search.fit(texts, COUNTS)


@pytest.mark.parametrize("model", [XGBClassifier(**XGB, enable_categorical=True), LGBMClassifier(**LGBM)])
def test_frames_of_categories_and_classes(model):
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical.from_codes(CODES, ["p", "q", "r"])})
    labels = np.array([0, 1])[(X[:, 0] + (CODES == 1) > 0.3).astype(int)]
    search = both(
        model,
        {"n_estimators": [2, 5], "max_depth": [2, 3]},
        frame,
        labels,
        cv=3,
        scoring=["accuracy", "neg_log_loss"],
        refit=False,
    )
    assert search.report_.fits_shared == 12 and search.report_.fits_done == 6


def test_versions_of_lightgbm_that_name_the_columns_of_arrays_warn_as_often(monkeypatch, recwarn):
    """Before 4.7 its models name the columns of arrays themselves, and miss the names in predictions."""
    names = property(lambda model: np.array(model._Booster.feature_name()))
    monkeypatch.setattr(lightgbm.LGBMModel, "feature_names_in_", names)
    grid = {"n_estimators": [2, 4], "learning_rate": [0.1, 0.5]}
    frame = pd.DataFrame(X, columns=list("abcdef"))
    search = GridSearchCV(LGBMRegressor(**LGBM), grid, cv=3).fit(frame, COUNTS)
    assert search.report_.fits_shared == 12 and not recwarn.list
    search = GridSearchCV(LGBMRegressor(**LGBM), grid, cv=3)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        search.fit(X, COUNTS)


def test_a_version_without_the_seams_fits_by_itself(monkeypatch):
    y = COUNTS
    monkeypatch.delattr(xgboost.XGBModel, "_create_dmatrix", raising=True)
    with keep_xgboost_bins(XGBRegressor(), kept := {}):
        pass
    monkeypatch.delattr(lightgbm.sklearn, "Dataset")
    with keep_lightgbm_bins(LGBMRegressor(**LGBM), kept):
        pass
    monkeypatch.undo()
    with keep_bins(other := XGBRegressor(**XGB), kept):
        other.fit(X, y)
    assert not kept


def test_every_setting_that_fails_is_left_to_scikit_learn():
    fold = FoldArrays(X[:9], COUNTS[:9], X[9:], COUNTS[9:], None, X[:9], COUNTS[:9], COUNTS[9:])
    settings = [{"n_estimators": 2, "learning_rate": rate} for rate in (-1.0, -2.0)]
    with pytest.raises(Unsupported, match="a fit gave"):
        next(iter(family_of(LGBMRegressor).fit_many(LGBMRegressor(**LGBM), settings, SingleFold(fold))))
