"""The report says what the scores of a search leave open."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import ElasticNet, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.model_selection import GridSearchCV, RandomizedSearchCV, one_standard_error
from manyfit.model_selection.results.displays._advice import advise
from tests._same_results import X, Y

# With so much noise, Ridge is best with an alpha near 1.
NOISY = Y + np.random.default_rng(0).normal(0, 100, len(Y))
EDGE = "may score better"
NOISE = "within the noise"


def advice(estimator, grid, y=Y, **params):
    search = GridSearchCV(estimator, grid, **params).fit(X, y)
    assert all(line in str(search.report_) for line in search.report_.advice)
    return search.report_.advice


def lines(said, text):
    return [line for line in said if text in line]


def test_scores_as_large_as_numbers_can_be_are_compared_without_a_warning():
    results = {"params": [{"alpha": 1.0}, {"alpha": 2.0}], "mean_test_score": [0.0, -0.1]}
    results |= {f"split{i}_test_score": [0.0, score] for i, score in enumerate([-1e200, 1e200])}
    search = SimpleNamespace(best_index_=0, n_splits_=2, estimator=Ridge(), cv=2)
    with np.errstate(all="raise"):
        assert lines(advise(search, results, "score", X), NOISE)


def test_a_best_value_at_either_edge():
    assert lines(advice(Ridge(), {"alpha": [10.0, 100.0, 1000.0]}), EDGE) == [
        "The best alpha, 10, is the smallest of 3 values: smaller ones may score better."
    ]
    pipe = make_pipeline(StandardScaler(), Ridge())
    assert lines(advice(pipe, {"ridge__alpha": [1e5, 1e4, 1e3, 1e2]}), EDGE) == [
        "The best ridge__alpha, 100, is the smallest of 4 values: smaller ones may score better."
    ]
    said = lines(advice(ElasticNet(alpha=0.01), {"l1_ratio": [0.1, 0.3, 0.6]}), EDGE)
    assert said == ["The best l1_ratio, 0.6, is the largest of 3 values: larger ones may score better."]


def test_none_where_the_best_is_inside_or_at_a_bound_of_the_estimator():
    assert not lines(advice(Ridge(), {"alpha": [1e-3, 1.0, 1e3]}, NOISY), EDGE)
    assert not lines(advice(ElasticNet(alpha=0.01), {"l1_ratio": [0.1, 0.6, 1.0]}), EDGE)
    assert not lines(advice(Ridge(), {"alpha": [0.0, 1e2, 1e3]}), EDGE)
    knn = advice(KNeighborsRegressor(), {"n_neighbors": [1, 40, 60]})
    assert not lines(knn, EDGE)


def test_none_on_a_plateau_of_two_values_or_of_words():
    assert not lines(advice(Ridge(), {"alpha": [1.0, 1e3]}), EDGE)
    assert not lines(advice(Ridge(), {"max_iter": [1, 2, 3], "alpha": [1e-3, 1.0, 1e3]}, NOISY), EDGE)
    assert not lines(advice(Ridge(), {"solver": ["svd", "cholesky", "lsqr"]}), EDGE)


def test_none_for_values_that_are_drawn():
    search = RandomizedSearchCV(Ridge(), {"alpha": stats.uniform(10, 90)}, n_iter=5, random_state=0)
    assert not lines(search.fit(X, Y).report_.advice, EDGE)
    listed = RandomizedSearchCV(Ridge(), {"alpha": [10, 50, 100]}, n_iter=3).fit(X, Y)
    assert lines(listed.report_.advice, EDGE)


def test_a_parameter_with_one_value():
    said = advice(Ridge(), {"alpha": [0.1, 1.0], "tol": [1e-3]})
    assert said[0] == "tol has one value, 0.001: set it on the estimator, or add values."
    assert not advice(Ridge(), {"alpha": [0.1]})


def test_a_winner_within_the_noise_of_its_folds():
    search = GridSearchCV(Ridge(), {"alpha": np.logspace(-2, 4, 13)}, cv=5).fit(X, NOISY)
    results = search.cv_results_
    folds = np.array([results[f"split{i}_test_score"] for i in range(5)]).T
    near = 0
    for row in range(13):
        d = folds[search.best_index_] - folds[row]
        # Nadeau and Bengio: the variance of the mean difference is (1/k + n_test/n_train) times that of one.
        error = np.sqrt((1 / 5 + 1 / 4) * d.var(ddof=1))
        near += row != search.best_index_ and d.mean() <= error
    assert 0 < near < 12
    assert f"{near} of 12 other settings" in lines(search.report_.advice, NOISE)[0]


def test_a_clear_winner_is_none():
    assert not lines(advice(Ridge(), {"alpha": [1.0, 1e9]}), NOISE)
    assert not lines(advice(Ridge(), {"alpha": [1.0, 1.1]}, cv=[(np.arange(60), np.arange(60, 80))]), NOISE)


@pytest.mark.parametrize(
    "params", [{"refit": one_standard_error()}, {"scoring": ["r2"], "refit": False}], ids=["callable", "none"]
)
def test_no_word_on_the_winner_where_the_mean_chose_none(params):
    assert not advice(Ridge(), {"alpha": [10.0, 100.0, 1000.0]}, **params)


def test_several_metrics_and_failing_fits():
    said = advice(Ridge(), {"alpha": [10.0, 100.0, 1000.0]}, scoring=["r2", "neg_max_error"], refit="r2")
    assert lines(said, EDGE)
    with pytest.warns(FitFailedWarning, match="5 fits failed"), pytest.warns(UserWarning, match="non-finite"):
        said = advice(Ridge(), {"alpha": [-1.0, 1.0, 1e9]}, NOISY)
    assert not said, "a setting without a score is no reason for one"


def test_the_number_of_columns_is_no_edge():
    pipeline = make_pipeline(StandardScaler(), PCA(), Ridge())
    said = advice(pipeline, {"pca__n_components": [1, 2, X.shape[1]]})
    assert lines(said, EDGE) == []
    said = advice(pipeline, {"pca__n_components": [1, 2, X.shape[1] - 1]})
    assert len(lines(said, EDGE)) == 1


def test_values_of_settings_that_were_dropped_or_not_made_count_as_listed():
    search = SimpleNamespace(best_index_=4, estimator=Ridge(), n_splits_=1, cv=2)
    settings = [(1, True), (2, False), (3, True), (1, True), (3, True)]
    params = [{"alpha": alpha, "fit_intercept": intercept} for alpha, intercept in settings]
    scores = np.array([0.1, 0.1, 0.1, 0.2, 0.3])
    halving = {"params": params, "mean_test_score": scores, "split0_test_score": scores}
    halving["iter"] = np.array([0, 0, 0, 1, 1])
    assert advise(search, halving, "score", X) == []
    results = {"params": [{"alpha": a} for a in (1, 2, 3, 4)]}
    scores = np.array([np.nan, 0.9, 0.5, 0.4])
    results |= {"mean_test_score": scores, "split0_test_score": scores}
    search = SimpleNamespace(best_index_=1, estimator=Ridge(), n_splits_=1, cv=2)
    assert not lines(advise(search, results, "score", X), EDGE)
    results["params"][0] = {"alpha": 9}
    assert lines(advise(search, results, "score", X), EDGE)
