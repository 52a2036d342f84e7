"""What scikit-learn's searches can do, ours can, with the same results."""

from __future__ import annotations

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.linalg import LinAlgWarning
from sklearn import config_context, model_selection
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import make_scorer, mean_squared_error, r2_score
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler, TargetEncoder
from sklearn.svm import SVC, SVR
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

from manyfit.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from tests._covering import covering, spread
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y, both
from tests._search_fixtures import RANDOM_LASSO

ALPHAS = {"alpha": [0.1, 1.0, 10.0]}
PIPE = Pipeline([("scale", StandardScaler()), ("model", Ridge())])


@pytest.mark.invariant("A fitted search holds no training data")
def test_a_fitted_search_pickles_small_and_without_the_data():
    big, y = np.tile(X, (100, 1)), np.tile(Y, 100)
    search = GridSearchCV(Ridge(), {"alpha": list(np.logspace(-3, 3, 10))}, return_train_score=True).fit(
        big, y
    )
    dumped = pickle.dumps(search)
    assert len(dumped) < 20_000
    assert big[:5].tobytes() not in dumped and y[:50].tobytes() not in dumped
    again = pickle.loads(dumped)
    np.testing.assert_array_equal(again.predict(big), search.predict(big))
    assert str(again.report_) == str(search.report_)


def test_clone_repr_html_tags():
    search = GridSearchCV(Ridge(), ALPHAS, sharing="exact", verify=1, memory_limit="1MB")
    copied = clone(search.fit(X, Y))
    assert not hasattr(copied, "report_")
    names = ("sharing", "verify", "memory_limit")
    assert [copied.get_params()[n] for n in names] == ["exact", 1, "1MB"]
    assert "sharing='exact'" in repr(search) and "GridSearchCV" in search._repr_html_()
    assert get_tags(search).estimator_type == "regressor"
    assert get_tags(GridSearchCV(SVC(kernel="precomputed"), {})).input_tags.pairwise


def test_nested_searches():
    inner = GridSearchCV(Ridge(), ALPHAS, cv=3)
    both(inner, {"estimator__fit_intercept": [True, False]}, cv=3)
    both(make_pipeline(StandardScaler(), inner), {"gridsearchcv__cv": [2, 3]}, cv=3)


def test_inverse_transform_and_other_methods():
    search = GridSearchCV(StandardScaler(), {"with_mean": [True, False]}, scoring=lambda *a: 1.0).fit(X)
    np.testing.assert_allclose(search.inverse_transform(search.transform(X)), X)
    assert not hasattr(GridSearchCV(Ridge(), ALPHAS).fit(X, Y), "predict_proba")
    model = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}).fit(X_CLASS, LABELS)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.predict_proba(X_CLASS).shape == (90, 3) and model.n_features_in_ == 6


def test_callable_refit_and_multimetric():
    def worst(results):
        return int(np.argmin(results["mean_test_r2"]))

    scoring = {"r2": "r2", "mse": "neg_mean_squared_error", "mine": make_scorer(r2_score)}
    search = both(Ridge(), ALPHAS, scoring=scoring, refit=worst, return_train_score=True)
    assert search.best_params_ == {"alpha": 10.0} and not hasattr(search, "best_score_")
    assert set(search.scorer_) == set(scoring) and search.report_.fits_done == 0
    both(Ridge(), ALPHAS, scoring=scoring, refit="mse")
    both(Ridge(), ALPHAS, scoring=lambda e, X, y: {"a": e.score(X, y), "b": 1.0}, refit="a")
    both(Ridge(), ALPHAS, scoring=scoring, refit=False)


def test_a_failing_callable_scorer_gets_the_error_score():
    def failing(estimator, X, y):
        if estimator.alpha > 5:
            raise ValueError("too much")
        return estimator.alpha

    with pytest.warns(UserWarning, match="Scoring failed"):
        search = both(Ridge(), ALPHAS, scoring=failing, refit=False, error_score=-1.0)
    assert search.cv_results_["mean_test_score"][2] == -1.0


@pytest.mark.invariant("A setting that fails costs only itself, and its first attempt leaves no trace")
@pytest.mark.filterwarnings("ignore:One or more of the (test|train) scores:UserWarning")
@pytest.mark.parametrize("error_score", [np.nan, -7.0])
def test_a_bad_setting_costs_only_itself(error_score):
    grid = {"model__alpha": [0.1, -1.0, 10.0], "model__fit_intercept": [True, "no"]}
    with pytest.warns(Warning, match="fits failed out of"):
        search = both(PIPE, grid, error_score=error_score, refit=False, return_train_score=True)
    assert search.report_.fits_done == 4 * 5  # of 6 settings, 2 are good


def test_error_score_raise_is_sklearns_error():
    with pytest.raises(ValueError, match="The 'alpha' parameter of Ridge must be a float in the range"):
        GridSearchCV(Ridge(), {"alpha": [1.0, -1.0]}, error_score="raise").fit(X, Y)


@pytest.mark.invariant("A training score reads the rows that it reads in scikit-learn")
@pytest.mark.filterwarnings("ignore:`TargetEncoder.shuffle`:FutureWarning")
def test_training_scores_behind_a_target_encoder():
    """Its fit_transform is cross-fitted: a training score must transform again."""
    codes = np.random.default_rng(0).integers(0, 12, (len(Y), 2)).astype(str).astype(object)
    pipe = make_pipeline(TargetEncoder(random_state=0), Ridge())
    both(pipe, {"ridge__alpha": [0.1, 1.0]}, codes, Y, return_train_score=True)
    lasso = make_pipeline(TargetEncoder(random_state=0), RANDOM_LASSO)
    both(lasso, {"lasso__alpha": [0.1, 1.0]}, codes, Y, return_train_score=True)


@pytest.mark.invariant("No estimator or scorer can change the data of another fit")
@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (make_pipeline(StandardScaler(copy=False), Lasso(copy_X=False)), {"lasso__alpha": [0.1, 1.0]}),
        (make_pipeline(StandardScaler(copy=False), Ridge(copy_X=False)), {"ridge__alpha": [0.1, 1.0]}),
        (
            make_pipeline(MinMaxScaler(clip=True, copy=False), Ridge(copy_X=False)),
            {"ridge__alpha": [0.1, 1.0]},
        ),
        (LinearRegression(copy_X=False), {"fit_intercept": [True, False]}),
    ],
)
def test_estimators_that_write_into_their_input(estimator, grid):
    data = X.copy()
    # Without training scores: scikit-learn computes them on rows that such a step has overwritten.
    both(estimator, grid, data, refit=False)
    np.testing.assert_array_equal(data, X)


def test_estimators_as_values_and_lists_of_grids():
    ridge, lasso, scaler = Ridge(), RANDOM_LASSO, MinMaxScaler()
    grid = [
        {"model": [ridge], "model__alpha": [0.1, 1.0], "scale": [scaler, "passthrough", StandardScaler()]},
        {"model": [lasso, LinearRegression()]},
        # Not the default penalty: scaling twice is scaling once up to rounding, and ranks tell such ties.
        {"model": [make_pipeline(StandardScaler(), Ridge(2.0))]},
        {},
    ]
    search = both(PIPE, grid)
    assert ridge.alpha == 1.0 and not hasattr(ridge, "coef_") and not hasattr(scaler, "scale_")
    assert search.best_estimator_.named_steps["model"] is not search.best_params_.get("model")
    assert search.cv_results_["params"][0]["model"] is ridge


def test_groups_and_fit_params_and_weights():
    groups = np.arange(len(Y)) // 7
    both(Ridge(), ALPHAS, cv=GroupKFold(4), fit_params={"groups": groups})
    both(Ridge(), ALPHAS, fit_params={"sample_weight": WEIGHTS}, return_train_score=True)
    both(Ridge(), ALPHAS, fit_params={"sample_weight": list(WEIGHTS)})
    search = both(PIPE, {"model__alpha": [0.1, 1]}, fit_params={"model__sample_weight": WEIGHTS})
    assert search.report_.fits_done == 0
    both(PIPE, {"model__alpha": [0.1, 1]}, fit_params={"scale__sample_weight": WEIGHTS})


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="a Pipeline in a search of 1.7 asks for a score request of its own",
)
def test_metadata_routing():
    groups = np.arange(len(Y)) // 7
    with config_context(enable_metadata_routing=True):
        model = Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        given = {"sample_weight": WEIGHTS, "groups": groups}
        cv = GroupKFold(3).set_split_request(groups=True)
        search = both(model, ALPHAS, cv=cv, fit_params=given, return_train_score=True)
        assert search.report_.fits_done == 0
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), model)
        both(pipe, {"ridge__alpha": [0.1, 1.0]}, fit_params={"sample_weight": WEIGHTS})
        unweighted = Ridge().set_fit_request(sample_weight=False).set_score_request(sample_weight=True)
        both(unweighted, ALPHAS, fit_params={"sample_weight": WEIGHTS})


def test_precomputed_kernels():
    kernel = X_CLASS @ X_CLASS.T
    both(SVC(kernel="precomputed"), {"C": [0.1, 1.0]}, kernel, LABELS, return_train_score=True)
    both(SVR(), {"kernel": ["precomputed"], "C": [1.0]}, X @ X.T, Y)


def test_composites():
    columns = ColumnTransformer(
        [("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(clip=True), [2])], remainder="passthrough"
    )
    union = FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler(clip=True))])
    for first in (columns, union):
        both(
            Pipeline([("first", first), ("model", Ridge())]),
            {"model__alpha": [0.1, 1.0]},
            return_train_score=True,
            cv=3,
        )
        grid = {"model__alpha": [0.1, 1.0], "first__a__with_mean": [True, False]}
        both(Pipeline([("first", first), ("model", RANDOM_LASSO)]), grid, cv=3)
    target = TransformedTargetRegressor(PIPE, transformer=StandardScaler())
    both(target, {"regressor__model__alpha": [0.1, 1.0]})


def test_unsupervised_and_without_candidates_values():
    both(DummyClassifier(), {}, X_CLASS, LABELS)
    both(StandardScaler(), {"with_mean": [True, False]}, y=None, scoring=lambda e, X, y=None: e.var_.sum())


@pytest.mark.parametrize(
    "estimator",
    spread(
        [
            RANDOM_LASSO,
            make_pipeline(StandardScaler(), RANDOM_LASSO),
            make_pipeline(MinMaxScaler(clip=True), Ridge()),
            Ridge(),
        ],
        2,
    ),
)
def test_two_jobs_give_the_same(estimator):
    name = next(n for n in estimator.get_params() if n.endswith("alpha"))
    one = both(estimator, {name: [0.1, 1.0, 5.0]}, cv=3, return_train_score=True)
    two = both(estimator, {name: [0.1, 1.0, 5.0]}, cv=3, return_train_score=True, n_jobs=2)
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    with joblib.parallel_config(backend="threading", n_jobs=2):
        both(estimator, {name: [0.1, 1.0, 5.0]}, cv=3)


def test_random_estimators_with_a_seed():
    both(RandomForestRegressor(random_state=0), {"n_estimators": [2, 4], "max_depth": [1, None]}, cv=2)


ODD_SPLITS = [([0, 1, 1, -1, 5], [2, 3]), (np.arange(80) < 60, np.arange(80) >= 60)]


@pytest.mark.parametrize(
    "cv", [KFold(3, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0), ODD_SPLITS]
)
def test_splits_of_all_kinds(cv):
    both(Ridge(), ALPHAS, cv=cv, return_train_score=True)
    both(Lasso(max_iter=100_000), ALPHAS, cv=cv, return_train_score=True)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error"])
def test_settings_that_tie_share_a_rank(scoring):
    """Equal settings score equal to the last bit, wherever they stand in a batch: the first one is best."""
    search = both(Ridge(), {"alpha": [0.7] * 9, "copy_X": [True, False]}, scoring=scoring, cv=2)
    assert search.best_index_ == 0 and set(search.cv_results_["rank_test_score"]) == {1}
    pipe = make_pipeline(StandardScaler(), PCA(), Ridge())
    sizes = both(pipe, {"pca__n_components": [5, None], "ridge__alpha": [0.7] * 3}, scoring=scoring, cv=2)
    assert set(sizes.cv_results_["rank_test_score"]) == {1}


def test_a_singular_setting_makes_no_warning_of_its_own():
    wide = np.random.default_rng(0).normal(size=(3000, 20))
    wide = np.c_[wide, wide[:, :5]]
    y = wide @ np.arange(25.0) + np.random.default_rng(1).normal(size=3000)
    zero = np.c_[wide, np.zeros(3000)]
    for data in (wide, zero):
        found = []
        for cls in (GridSearchCV, model_selection.GridSearchCV):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                cls(Ridge(), {"alpha": [0.0, 1.0, 10.0]}, cv=3, refit=False).fit(data, y)
            found.append(sorted(w.category.__name__ for w in caught))
        assert found[0] == found[1]


def test_randomized_search():
    search = RandomizedSearchCV(Ridge(), {"alpha": list(range(1, 50))}, n_iter=5, random_state=0).fit(X, Y)
    assert search.report_.fits_done == 0 and len(search.cv_results_["params"]) == 5
    again = RandomizedSearchCV(Ridge(), {"alpha": list(range(1, 50))}, n_iter=5, random_state=0).fit(X, Y)
    assert again.best_params_ == search.best_params_


@pytest.mark.invariant("Families and affine steps serve exact types, never subclasses")
def test_a_subclass_of_ridge_is_not_served():
    class Zero(Ridge):
        def predict(self, X):
            return np.zeros(len(X))

    search = both(Zero(), ALPHAS)
    assert search.report_.fits_done == 15


def test_verbose_prints_what_sklearn_prints(capsys):
    GridSearchCV(RANDOM_LASSO, {"alpha": [1.0]}, cv=2, verbose=3).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Fitting 2 folds for each of 1 candidates, totalling 2 fits"
    assert (
        lines[1].startswith("[CV 1/2] END ")
        and "alpha=1.0;, score=" in lines[1]
        and "total time=" in lines[1]
    )


def mean_of_squares(truth, predicted):
    """Of two columns, or of every entry with every other where the shapes differ."""
    return float(np.mean((np.asarray(truth) - predicted) ** 2))


@pytest.mark.parametrize(
    "y", spread({"column": Y[:, None], "frame": pd.DataFrame({"y": Y}), "two": np.c_[Y, Y]}.items(), 1)
)
def test_a_metric_is_given_predictions_of_scikit_learns_shape(y):
    scoring = make_scorer(mean_of_squares)
    models = [
        Ridge(),
        LinearRegression(),
        *(make_pipeline(s, Ridge()) for s in (StandardScaler(), MinMaxScaler(), MinMaxScaler(clip=True))),
    ]
    for model in models:
        name = next((n for n in model.get_params() if n.endswith("alpha")), "fit_intercept")
        both(model, {name: [1.0, 10.0] if name.endswith("alpha") else [True, False]}, y=y, scoring=scoring)
    # Groups of both kinds in one search.
    pipe = Pipeline([("model", Ridge())])
    both(pipe, {"model": [Ridge(), LinearRegression(), Ridge(2.0)]}, y=y, scoring=scoring)


@pytest.mark.parametrize("method", ["predict_proba", "decision_function", ("decision_function", "predict")])
def test_a_response_that_a_regressor_lacks_scores_nan(method):
    scoring = make_scorer(mean_squared_error, response_method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search = both(Ridge(), ALPHAS, scoring=scoring, refit=False)
    lacks = isinstance(method, str)
    assert np.isnan(search.cv_results_["mean_test_score"]).all() == lacks


def centres(truth, predicted, sample_weight=None):
    """A metric that writes into what it is given."""
    if sample_weight is not None:
        sample_weight *= 2
    if isinstance(truth, list):
        truth[0] += 100.0
    else:
        truth -= predicted.mean()
    return float(np.average(np.abs(np.asarray(truth)), weights=sample_weight))


@pytest.mark.parametrize(
    ("as_type", "model"),
    covering(
        [np.array, pd.Series, list],
        [Ridge(), RANDOM_LASSO, make_pipeline(MinMaxScaler(clip=True), Ridge())],
        strength=1,
    ),
)
def test_a_metric_that_writes_into_the_targets_changes_its_own_only(model, as_type):
    name = next(n for n in model.get_params() if n.endswith("alpha"))
    params = {"scoring": make_scorer(centres), "return_train_score": True}
    both(model, {name: [1.0] * 3}, y=as_type(Y), **params)


@pytest.mark.parametrize("model", [Ridge(), RANDOM_LASSO])
def test_a_metric_that_writes_into_the_weights_changes_its_own_only(model):
    with config_context(enable_metadata_routing=True):
        model = clone(model).set_fit_request(sample_weight=True)
        scoring = make_scorer(centres).set_score_request(sample_weight=True)
        both(model, {"alpha": [1.0] * 3}, fit_params={"sample_weight": WEIGHTS + 1.0}, scoring=scoring)


@pytest.mark.cases(2)
@pytest.mark.parametrize("size", spread([1e-160, 1e-150, 1e-100, 1e-16, 1e16, 1e100, 1e150], 3))
def test_features_and_targets_of_any_size(size):
    both(LinearRegression(), {}, X=X * size, refit=False)
    for solver in ("svd", "auto"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)  # from scikit-learn, for alpha=0
            grid = {"alpha": [1.0, 1e-40, 0.0]}
            both(Ridge(solver=solver), grid, X=X * size, refit=False)
    both(Ridge(), ALPHAS, y=Y * size, refit=False)


def test_indices_of_a_small_type():
    data = np.random.default_rng(0).normal(size=(40_000, 2))
    rows = np.arange(30_000, dtype=np.int16)
    cv = [(rows[:20_000], rows[20_000:] - np.int16(5))]
    expected = model_selection.cross_val_score(Ridge(), data, data[:, 0], cv=cv)
    np.testing.assert_allclose(cross_val_score(Ridge(), data, data[:, 0], cv=cv), expected)


def test_settings_with_other_functions_of_the_target_have_moments_of_their_own():
    ways = [(np.log1p, np.expm1), (np.sqrt, np.square)]
    grid = [{"func": [f], "inverse_func": [g], "regressor__alpha": [0.1, 10.0]} for f, g in ways]
    search = both(TransformedTargetRegressor(Ridge()), grid, y=np.abs(Y) + 1.0, cv=3)
    assert search.report_.fits_shared == 12
