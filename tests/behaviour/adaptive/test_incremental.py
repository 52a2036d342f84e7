"""Incremental searches train by `partial_fit`, and their scores are those of models trained by hand."""

from __future__ import annotations

import pickle

import lightgbm
import numpy as np
import pytest
import scipy.sparse
import xgboost
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import ShuffleSplit, train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import HyperbandSearchCV, IncrementalSearchCV, SuccessiveHalvingSearchCV
from manyfit.model_selection.search.adaptive.incremental._schedules import (
    Halving,
    has_stalled,
    hyperband_brackets,
)
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y
from tests.cluster._clusters import within

SGD = SGDClassifier(random_state=0)
ALPHAS = {"alpha": [1e-4, 1e-3, 1e-2, 0.1, 1.0]}
SPACE = {"alpha": loguniform(1e-5, 1)}


class Curve(BaseEstimator):
    """Its score is `slope` times the calls of partial_fit, up to `top`."""

    def __init__(self, slope=1.0, top=1e9, fails_at=None):
        self.slope, self.top, self.fails_at = slope, top, fails_at

    def fit(self, X, y=None):
        raise AssertionError("models are trained by partial_fit")

    def partial_fit(self, X, y=None):
        self.calls_ = getattr(self, "calls_", 0) + 1
        if self.calls_ == self.fails_at:
            raise ValueError("it breaks")
        return self

    def score(self, X, y=None):
        return min(self.slope * self.calls_, self.top)


def by_hand(model, params, calls, X, y, random_state=0, **given):
    """The score of a model after some calls, and the model."""
    train, test = next(ShuffleSplit(1, test_size=0.2, random_state=random_state).split(X))
    model = clone(model).set_params(**params)
    given = {name: value if name == "classes" else value[train] for name, value in given.items()}
    for _ in range(calls):
        model.partial_fit(X[train], y[train], **given)
    return model.score(X[test], y[test]), model


@pytest.mark.invariant("An adaptive search that stops nothing gives the results of the plain search")
def test_scores_are_those_of_models_trained_by_hand():
    search = IncrementalSearchCV(SGD, ALPHAS, "grid", max_iter=6, fits_per_score=2, random_state=0)
    search.fit(X_CLASS, LABELS)
    classes = np.unique(LABELS)
    assert [one["alpha"] for one in search.cv_results_["params"]] == ALPHAS["alpha"]
    for records in search.model_history_.values():
        assert [one["partial_fit_calls"] for one in records] == [1, 3, 5, 6]
        for one in records:
            expected = by_hand(SGD, one["params"], one["partial_fit_calls"], X_CLASS, LABELS, classes=classes)
            assert one["score"] == expected[0]
    best = max(search.model_history_.values(), key=lambda records: records[-1]["score"])[-1]
    assert search.best_score_ == best["score"] and search.best_params_ == best["params"]
    _, model = by_hand(SGD, best["params"], 6, X_CLASS, LABELS, classes=classes)
    np.testing.assert_array_equal(search.best_estimator_.coef_, model.coef_)
    np.testing.assert_array_equal(search.predict(X_CLASS), model.predict(X_CLASS))


def test_what_dask_ml_has_on_a_fitted_search():
    search = IncrementalSearchCV(SGD, SPACE, 4, max_iter=3, random_state=0).fit(X_CLASS, LABELS)
    assert set(search.history_[0]) == {
        "model_id", "params", "partial_fit_calls", "partial_fit_time", "score", "score_time",
        "elapsed_wall_time",
    }  # fmt: skip
    assert set(search.cv_results_) == {
        "mean_partial_fit_time", "std_partial_fit_time", "mean_score_time", "std_score_time", "test_score",
        "rank_test_score", "model_id", "partial_fit_calls", "params", "param_alpha",
    }  # fmt: skip
    assert [one for records in search.model_history_.values() for one in records] == sorted(
        search.history_, key=lambda one: one["model_id"]
    )
    assert search.cv_results_["model_id"][search.best_index_] in search.model_history_
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    assert (search.n_splits_, search.multimetric_) == (1, False)
    assert search.classes_.tolist() == [0, 1, 2] and search.n_features_in_ == 6
    times = [one["elapsed_wall_time"] for one in search.history_]
    assert times == sorted(times) and times[-1] <= search.report_.seconds["total"]


def test_the_held_out_rows_are_those_of_train_test_split():
    search = IncrementalSearchCV(
        SGD, ALPHAS, "grid", max_iter=1, test_size=0.3, random_state=5
    ).fit(X_CLASS, LABELS)  # fmt: skip
    train, test, y_train, y_test = train_test_split(X_CLASS, LABELS, test_size=0.3, random_state=5)
    model = clone(SGD).set_params(alpha=1e-4).partial_fit(train, y_train, classes=np.unique(LABELS))
    assert search.cv_results_["test_score"][0] == model.score(test, y_test)


def test_successive_halving_trains_the_best_for_longer():
    slopes = {"slope": [0.1, 0.9, 0.3, 0.7, 0.5, 0.2, 0.8, 0.4, 0.6]}
    search = SuccessiveHalvingSearchCV(
        Curve(), slopes, "grid", n_initial_iter=2, aggressiveness=3, max_iter=100, random_state=0
    ).fit(X, Y)
    made = dict(zip(slopes["slope"], search.cv_results_["partial_fit_calls"], strict=True))
    assert {slope for slope, calls in made.items() if calls == 18} == {0.9}
    assert {slope for slope, calls in made.items() if calls == 6} == {0.7, 0.8}
    assert sum(calls == 2 for calls in made.values()) == 6
    assert search.best_params_ == {"slope": 0.9} and search.best_estimator_.calls_ == 18
    assert search.report_.fits_done == 9


def test_a_dropped_model_may_be_the_best():
    class Falling(Curve):
        def score(self, X, y=None):
            return self.slope if self.calls_ == 1 else -self.calls_

    search = SuccessiveHalvingSearchCV(
        Falling(), {"slope": [1.0, 2.0, 3.0, 4.0]}, "grid", n_initial_iter=1, aggressiveness=2, max_iter=4
    ).fit(X, Y)
    assert search.best_score_ == 2.0 and search.best_estimator_.slope == 2.0 == search.best_params_["slope"]


@pytest.mark.parametrize(
    ("max_iter", "factor", "brackets"),
    [(9, 3, {2: (9, 1), 1: (5, 3), 0: (3, 9)}), (1, 3, {0: (1, 1)}),
     (81, 3, {4: (81, 1), 3: (34, 3), 2: (15, 9), 1: (8, 27), 0: (5, 81)}),
     (243, 3, {5: (243, 1), 4: (98, 3), 3: (41, 9), 2: (18, 27), 1: (9, 81), 0: (6, 243)})],
)  # fmt: skip
def test_brackets_are_those_of_the_paper(max_iter, factor, brackets):
    found = hyperband_brackets(max_iter, factor)
    assert {s: (one.n, one.first) for s, one in found.items()} == brackets
    assert all(one.rounds()[-1][1] <= max_iter for one in found.values())


def test_rounds_of_a_bracket():
    assert Halving(81, 1, 3, 81).rounds() == [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)]
    assert Halving(10, 9, 3, 100).rounds() == [(10, 9), (3, 27), (1, 81)]
    assert Halving(100, 9, 3, 30).rounds() == [(100, 9), (33, 27), (11, 30)]
    assert Halving(9, 2, 3, 100).n_calls == 9 * 2 + 3 * 4 + 12


def test_hyperband_does_what_its_metadata_says():
    search = HyperbandSearchCV(SGD, SPACE, max_iter=9, random_state=0).fit(X_CLASS, LABELS)
    assert search.metadata_ == search.metadata
    assert [one["bracket"] for one in search.metadata["brackets"]] == [2, 1, 0]
    assert search.metadata["partial_fit_calls"] == search.cv_results_["partial_fit_calls"].sum() == 69
    assert sum(len(records) for records in search.model_history_.values()) == len(search.history_)
    best = search.cv_results_["params"][search.best_index_]
    calls = search.cv_results_["partial_fit_calls"][search.best_index_]
    expected, _ = by_hand(SGD, best, calls, X_CLASS, LABELS, classes=np.unique(LABELS))
    assert search.best_score_ == expected == search.cv_results_["test_score"].max()
    for s in (2, 1, 0):
        ids = [one for one in search.model_history_ if one.startswith(f"bracket={s}-")]
        assert len(ids) == {2: 9, 1: 5, 0: 3}[s]


def test_models_that_stall_stop():
    grid = {"slope": [1.0], "top": [4.0, 100.0]}
    search = IncrementalSearchCV(Curve(), grid, "grid", max_iter=30, patience=5, tol=0.0).fit(X, Y)
    made = search.cv_results_["partial_fit_calls"].tolist()
    assert made[1] == 30 and 4 + 5 <= made[0] <= 12
    flat = Curve(slope=0.0)
    still = IncrementalSearchCV(flat, {"top": [1.0]}, "grid", max_iter=30, patience=True).fit(X, Y)
    assert still.cv_results_["partial_fit_calls"].tolist()[0] < 30
    bands = HyperbandSearchCV(flat, {"top": loguniform(1, 2)}, max_iter=27, patience=3).fit(X, Y)
    assert bands.metadata_["partial_fit_calls"] < bands.metadata["partial_fit_calls"]
    assert bands.metadata_["n_models"] == bands.metadata["n_models"]


def test_what_a_plateau_is():
    def records(*scores):
        return [{"partial_fit_calls": j + 1, "score": score} for j, score in enumerate(scores)]

    assert has_stalled(records(1, 1, 1), 2, 0.0) and not has_stalled(records(1, 1, 2), 2, 0.0)
    assert has_stalled(records(0, 1, 1, 1), 2, 0.0) and has_stalled(records(1, 1.05, 1.1), 2, 0.2)
    assert not has_stalled(records(1), 2, 0.0) and not has_stalled(records(1, 1, 1), 0, 0.0)
    assert not has_stalled(records(1, 1, 1), 2, None)


def test_decay_drops_the_worst():
    grid = {"slope": [float(j) for j in range(12)]}
    search = IncrementalSearchCV(Curve(), grid, "grid", decay_rate=1.0, max_iter=20).fit(X, Y)
    made = search.cv_results_["partial_fit_calls"]
    assert np.all(np.diff(made) >= 0) and made[0] == 1 and search.best_params_ == {"slope": 11.0}
    assert [int(np.sum(made > calls)) for calls in range(4)] == [12, 6, 4, 3]


def test_sparse_rows_weights_and_labels_that_are_words():
    counts = scipy.sparse.csr_matrix(np.abs(X_CLASS).round())
    words = np.array(["a", "b", "c"])[LABELS]
    weights = np.arange(1.0, len(LABELS) + 1)
    search = IncrementalSearchCV(MultinomialNB(), ALPHAS, "grid", max_iter=2, random_state=0)
    search.fit(counts, words, sample_weight=weights)
    for one in search.history_:
        expected = by_hand(
            MultinomialNB(), one["params"], one["partial_fit_calls"], counts, words,
            sample_weight=weights, classes=np.unique(words),
        )  # fmt: skip
        assert one["score"] == expected[0]
    assert search.predict(counts).dtype.kind == "U"


def test_regression_scoring_and_no_targets():
    grid = {"alpha": [1e-4, 1e-2]}
    search = IncrementalSearchCV(
        SGDRegressor(random_state=0), grid, "grid", max_iter=2, scoring="neg_mean_absolute_error",
        random_state=0,
    ).fit(X, Y, sample_weight=WEIGHTS)  # fmt: skip
    assert search.best_score_ < 0 and search.score(X, Y) < 0
    clusters = IncrementalSearchCV(MiniBatchKMeans(random_state=0, n_init=1), {"n_clusters": [2, 5]}, "grid",
                                   max_iter=2, random_state=0).fit(X)  # fmt: skip
    assert clusters.best_params_ == {"n_clusters": 5} and clusters.predict(X).max() == 4


def test_a_model_that_fails_ends():
    grid = {"slope": [1.0, 2.0], "fails_at": [None, 3]}
    search = IncrementalSearchCV(Curve(), grid, "grid", max_iter=5)
    with pytest.warns(FitFailedWarning, match="it breaks"):
        search.fit(X, Y)
    scores, calls = search.cv_results_["test_score"], search.cv_results_["partial_fit_calls"]
    failed = np.isnan(scores)
    assert failed.sum() == 2 and set(calls[failed]) == {3} and set(calls[~failed]) == {5}
    assert search.best_score_ == 10.0 and search.cv_results_["rank_test_score"][failed].tolist() == [3, 3]
    with pytest.raises(ValueError, match="it breaks"):
        search.set_params(error_score="raise").fit(X, Y)


@pytest.mark.slow
def test_models_train_in_other_processes_too():
    options = {"max_iter": 9, "random_state": 0}
    here = HyperbandSearchCV(SGD, SPACE, **options).fit(X_CLASS, LABELS)
    there = HyperbandSearchCV(SGD, SPACE, n_jobs=2, **options).fit(X_CLASS, LABELS)
    with within(2):
        cluster = HyperbandSearchCV(SGD, SPACE, **options).fit(X_CLASS, LABELS)
    assert cluster.report_.split_workers
    for other in (there, cluster):
        assert other.cv_results_["test_score"].tolist() == here.cv_results_["test_score"].tolist()
        np.testing.assert_array_equal(other.best_estimator_.coef_, here.best_estimator_.coef_)


def test_copies_lines_and_errors(capsys):
    search = clone(IncrementalSearchCV(SGD, ALPHAS, "grid", max_iter=2, verbose=1, random_state=0))
    again = pickle.loads(pickle.dumps(search.fit(X_CLASS, LABELS)))
    assert again.best_score_ == search.best_score_
    assert capsys.readouterr().out.startswith("5 models, 5 calls of partial_fit, best score ")
    pipeline = make_pipeline(StandardScaler(), SGDClassifier())
    with pytest.raises(TypeError, match="Pipeline does not have. Transform X .* search SGDClassifier"):
        IncrementalSearchCV(pipeline, {"sgdclassifier__alpha": [0.1]}).fit(X, Y)
    with pytest.raises(TypeError, match="which DecisionTreeClassifier does not have. Use Halving"):
        IncrementalSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, "grid").fit(X_CLASS, LABELS)
    several = {"scoring": ["accuracy", "f1_macro"]}
    for wrong in (
        {"max_iter": 0}, {"patience": 1}, {"tol": -1}, {"test_size": 0.0}, {"decay_rate": -1}, several
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of IncrementalSearchCV must"):
            clone(search).set_params(**wrong).fit(X_CLASS, LABELS)
    with pytest.raises(ValueError, match="'alhpa'") as caught:
        clone(search).set_params(parameters={"alhpa": [1.0]}).fit(X_CLASS, LABELS)
    assert caught.value.__notes__ == ["Did you mean 'alpha'?"]


@pytest.mark.parametrize("wrong", [{"aggressiveness": 1}, {"max_iter": 0}])
def test_the_plan_of_hyperband_refuses_wrong_parameters(wrong):
    search = HyperbandSearchCV(SGD, SPACE).set_params(**wrong)
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of HyperbandSearchCV must"):
        _ = search.metadata


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=3, random_state=0),
        RandomForestClassifier(3, random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=0),
        xgboost.XGBClassifier(n_estimators=3, n_jobs=1),
        lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1),
    ],
    ids=lambda one: type(one).__name__,
)
def test_boosting_and_forests_go_on_from_their_last_round(estimator):
    X, y = load_breast_cancer(return_X_y=True)
    grid = {"max_depth": [1, 3]}
    search = IncrementalSearchCV(estimator, grid, "grid", max_iter=4, fits_per_score=2, random_state=0)
    search.fit(X, y)
    assert search.cv_results_["partial_fit_calls"].tolist() == [4, 4] and len(search.history_) == 6
    size = "max_iter" if "max_iter" in estimator.get_params() else "n_estimators"
    train, test = next(ShuffleSplit(1, test_size=0.2, random_state=0).split(X))
    for record in search.history_:
        whole = clone(estimator).set_params(**record["params"], **{size: 3 * record["partial_fit_calls"]})
        whole.fit(X[train], y[train])
        assert record["score"] == pytest.approx(whole.score(X[test], y[test]), abs=1e-12)
    best = search.best_estimator_
    whole = clone(estimator).set_params(**search.best_params_, **{size: 12}).fit(X[train], y[train])
    np.testing.assert_allclose(best.predict_proba(X), whole.predict_proba(X), atol=1e-6)


def test_solvers_with_max_iter_are_no_models_that_grow():
    search = IncrementalSearchCV(LogisticRegression(warm_start=True), {"C": [1]})
    with pytest.raises(TypeError, match="which LogisticRegression does not have"):
        search.fit(*load_breast_cancer(return_X_y=True))
