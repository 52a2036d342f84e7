"""Incremental searches with cross-validation, and what they count, route and tell callbacks."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.neural_network import MLPClassifier

from manyfit.model_selection import HyperbandSearchCV, IncrementalSearchCV, SuccessiveHalvingSearchCV
from tests._covering import spread
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y
from tests.behaviour.adaptive.test_incremental import ALPHAS, SGD, SPACE, Curve


def trained(params, calls, rows, **given):
    """An SGDClassifier after some calls on some rows."""
    model = clone(SGD).set_params(**params)
    for _ in range(calls):
        model.partial_fit(X_CLASS[rows], LABELS[rows], np.unique(LABELS), **given)
    return model


def test_every_model_is_cross_validated():
    search = IncrementalSearchCV(SGD, ALPHAS, "grid", max_iter=4, fits_per_score=3, cv=3, random_state=0)
    search.fit(X_CLASS, LABELS)
    splits = list(StratifiedKFold(3).split(X_CLASS, LABELS))
    for one in search.history_:
        models = [trained(one["params"], one["partial_fit_calls"], train) for train, _ in splits]
        scores = [
            model.score(X_CLASS[test], LABELS[test]) for model, (_, test) in zip(models, splits, strict=True)
        ]
        assert one["split_scores"] == scores and one["score"] == np.mean(scores)
    results, best = search.cv_results_, search.best_index_
    assert search.best_score_ == results["mean_test_score"].max() == results["test_score"][best]
    by_split = np.array([results[f"split{i}_test_score"] for i in range(3)])
    np.testing.assert_array_equal(results["std_test_score"], by_split.std(axis=0))
    whole = trained(search.best_params_, 4, slice(None))
    np.testing.assert_array_equal(search.best_estimator_.coef_, whole.coef_)
    assert search.n_splits_ == 3 and "refit" in search.report_.seconds


def test_a_cv_of_one_split_has_its_score_too():
    cv = ShuffleSplit(1, test_size=0.3, random_state=1)
    search = IncrementalSearchCV(SGD, ALPHAS, "grid", max_iter=2, cv=cv, random_state=0).fit(X_CLASS, LABELS)
    ((train, test),) = cv.split(X_CLASS)
    params = search.cv_results_["params"]
    scores = [trained(one, 2, train).score(X_CLASS[test], LABELS[test]) for one in params]
    assert search.cv_results_["split0_test_score"].tolist() == scores
    assert search.cv_results_["mean_test_score"].tolist() == scores
    assert search.history_[-1]["split_scores"] == scores[-1:]


def test_labels_in_several_columns():
    columns = np.column_stack([LABELS == 0, LABELS == 1, X_CLASS[:, 0] > 0]).astype(int)
    network = MLPClassifier(hidden_layer_sizes=(3,), random_state=0)
    search = IncrementalSearchCV(network, {"alpha": [0.1]}, "grid", max_iter=2, cv=KFold(2), random_state=0)
    search.fit(X_CLASS, columns)
    for i, (train, test) in enumerate(KFold(2).split(X_CLASS)):
        model = clone(network).set_params(alpha=0.1)
        for _ in range(2):
            model.partial_fit(X_CLASS[train], columns[train], classes=[0, 1, 2])
        score = model.score(X_CLASS[test], columns[test])
        assert search.cv_results_[f"split{i}_test_score"].tolist() == [score]


@pytest.mark.parametrize("n_jobs", spread([1, 2], 1))
def test_rounds_of_splits_go_on_from_their_own_models(n_jobs):
    search = HyperbandSearchCV(SGD, SPACE, max_iter=3, cv=KFold(2), random_state=0, n_jobs=n_jobs)
    search.fit(X_CLASS, LABELS)
    assert search.metadata_ == search.metadata
    train, test = list(KFold(2).split(X_CLASS))[1]
    for records in search.model_history_.values():
        model = trained(records[-1]["params"], records[-1]["partial_fit_calls"], train)
        assert records[-1]["split_scores"][1] == model.score(X_CLASS[test], LABELS[test])


def test_a_model_counts_as_one_fit_on_each_split():
    search = IncrementalSearchCV(SGD, {"alpha": [1e-3, 1e-2, 1.0]}, "grid", max_iter=4, random_state=0)
    report = search.fit(X_CLASS, LABELS).report_
    assert (report.fits_requested, report.fits_done, len(search.history_)) == (3, 3, 12)
    assert "scikit-learn made all 3 fits" in str(report)
    report = search.set_params(cv=2).fit(X_CLASS, LABELS).report_
    assert (report.fits_requested, report.fits_done) == (6, 6)
    assert report.groups[0]["estimator"] == "SGDClassifier" and report.groups[0]["settings"] == 3


def test_one_failing_model_of_the_last_round_is_no_failure_of_all():
    grid = {"slope": [1.0, 2.0, 3.0], "fails_at": [2]}
    search = SuccessiveHalvingSearchCV(Curve(), grid, "grid", n_initial_iter=1, aggressiveness=3, max_iter=9)
    with pytest.warns(Warning, match="1 fits failed out of a total of 3"):
        search.fit(X, Y)
    assert search.best_score_ == 2.0 and np.isnan(search.cv_results_["test_score"][2])
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        search.set_params(parameters={"fails_at": [1], "slope": [1.0, 2.0, 3.0]}).fit(X, Y)


def test_what_cannot_be_combined():
    with pytest.raises(ValueError, match="holds out one part of the rows, and cv=3 several"):
        IncrementalSearchCV(SGD, ALPHAS, cv=3, test_size=0.1).fit(X_CLASS, LABELS)


def test_groups_weights_and_metadata_routing():
    groups = np.arange(len(Y)) % 4
    grid = {"alpha": [1e-4, 1e-2]}
    options = {"cv": GroupKFold(4), "max_iter": 2, "random_state": 0}
    plain = IncrementalSearchCV(SGDRegressor(random_state=0), grid, "grid", **options)
    plain.fit(X, Y, groups=groups, sample_weight=WEIGHTS)
    train, test = next(GroupKFold(4).split(X, groups=groups))

    def by_hand(params, test_weights=None):
        model = SGDRegressor(random_state=0, **params)
        for _ in range(2):
            model.partial_fit(X[train], Y[train], sample_weight=WEIGHTS[train])
        return model.score(X[test], Y[test], test_weights)

    assert plain.history_[-1]["split_scores"][0] == by_hand({"alpha": 1e-2})
    with config_context(enable_metadata_routing=True):
        model = SGDRegressor(random_state=0)
        model.set_partial_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = IncrementalSearchCV(model, grid, "grid", **options)
        routed.fit(X, Y, groups=groups, sample_weight=WEIGHTS)
        assert routed.history_[-1]["split_scores"][0] == by_hand({"alpha": 1e-2}, WEIGHTS[test])
        with pytest.raises(Exception, match="sample_weight"):
            IncrementalSearchCV(SGDRegressor(), grid, "grid", **options).fit(
                X, Y, groups=groups, sample_weight=WEIGHTS
            )


@pytest.mark.parametrize(
    ("estimator", "fits"),
    [
        (xgboost.XGBRegressor(n_estimators=4, n_jobs=1, max_depth=3), 3),
        (lightgbm.LGBMRegressor(n_estimators=4, verbose=-1, n_jobs=1, num_leaves=7), 3),
    ],
    ids=["xgboost", "lightgbm"],
)
def test_boosting_goes_on_from_the_last_booster(estimator, fits):
    """Where nothing is drawn, the libraries go on as one longer fit: to the bit, but for float32 sums."""
    search = IncrementalSearchCV(estimator, {"learning_rate": [0.1, 0.3]}, "grid", max_iter=fits, cv=KFold(2))
    search.fit(X, Y)
    whole = clone(estimator).set_params(**search.best_params_, n_estimators=4 * fits).fit(X, Y)
    np.testing.assert_allclose(search.predict(X), whole.predict(X), rtol=1e-5)
    booster = getattr(search.best_estimator_, "booster_", None)
    n = booster.num_trees() if booster else search.best_estimator_.get_booster().num_boosted_rounds()
    assert n == 4 * fits
