"""What holds for every search that chooses: routing, failing fits, callbacks, clusters, and no stopping."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold
from sklearn.naive_bayes import MultinomialNB

from manyfit.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    HyperbandSearchCV,
    IncrementalSearchCV,
    OptunaSearchCV,
    RandomizedSearchCV,
    SuccessiveHalvingSearchCV,
)
from tests._callback_recorder import Recorder
from tests._covering import spread
from tests._same_results import LABELS, X_CLASS
from tests.cluster._clusters import within

CV = KFold(4, shuffle=True, random_state=0)
ALPHAS = [1e-4, 1e-3, 1e-2, 0.1]
SGD = SGDClassifier(random_state=0)
INCREMENTAL = ("incremental", "successive halving", "hyperband")
SEARCHES: dict[str, Callable[..., Any]] = {
    "race": lambda model, grid, **more: GridSearchCV(model, grid, race=0.2, **more),
    "budget": lambda model, grid, **more: RandomizedSearchCV(
        model, grid, n_iter=4, time_budget=1e9, random_state=0, **more
    ),
    "halving": lambda model, grid, **more: HalvingGridSearchCV(
        model, grid, factor=2, random_state=0, min_resources=20, **more
    ),
    "random halving": lambda model, grid, **more: HalvingRandomSearchCV(
        model, grid, factor=2, random_state=0, min_resources=20, n_candidates=4, **more
    ),
    "incremental": lambda model, grid, **more: IncrementalSearchCV(
        model, grid, "grid", max_iter=3, random_state=0, **more
    ),
    "successive halving": lambda model, grid, **more: SuccessiveHalvingSearchCV(
        model, grid, "grid", n_initial_iter=1, aggressiveness=2, max_iter=4, random_state=0, **more
    ),
    "hyperband": lambda model, grid, **more: HyperbandSearchCV(
        model, grid, max_iter=2, aggressiveness=2, random_state=0, **more
    ),
}


def optuna_search(model: Any, grid: Any, **more: Any) -> Any:
    from optuna.samplers import GridSampler

    return OptunaSearchCV(model, grid, n_trials=4, batch_size=2, sampler=GridSampler(grid, seed=0), **more)


if find_spec("optuna"):
    SEARCHES["optuna"] = optuna_search
# Those that can end a fit start processes, which takes longest.
WHEREVER = sorted(SEARCHES, key=["halving", *SEARCHES].index)
every_search = pytest.mark.parametrize("kind", SEARCHES)
some_searches = pytest.mark.parametrize("kind", spread(SEARCHES, 3))


def scores(search: Any) -> Any:
    results = search.cv_results_
    return results["mean_test_score" if "mean_test_score" in results else "test_score"]


@pytest.mark.cases(3)
@every_search
def test_weights_are_routed_to_fits_and_scores(kind: str) -> None:
    """Rows of no weight decide nothing, whatever their label, if both fits and scores get the weights."""
    weights, counts = (np.arange(len(LABELS)) % 3 > 0).astype(float), abs(X_CLASS)
    grid, found = {"alpha": [0.01, 1.0, 10.0, 100.0]}, []
    with sklearn.config_context(enable_metadata_routing=True):
        model = MultinomialNB().set_fit_request(sample_weight=True)
        model.set_partial_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        for labels in (LABELS, np.where(weights > 0, LABELS, (LABELS + 1) % 3)):
            search = SEARCHES[kind](model, grid, cv=CV)
            found.append(scores(search.fit(counts, labels, sample_weight=weights)))
        with pytest.raises(Exception, match="sample_weight"):
            SEARCHES[kind](SGD, {"alpha": ALPHAS}, cv=CV).fit(counts, LABELS, sample_weight=weights)
    np.testing.assert_allclose(*found, rtol=1e-12)
    search = SEARCHES[kind](MultinomialNB(), grid, cv=CV).fit(counts, np.where(weights > 0, LABELS, 0))
    assert not np.allclose(scores(search), found[0], equal_nan=True), "without weights these labels count"


class Breaks(SGDClassifier):
    """Cannot be fitted with one of the settings."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        self._break()
        return super().partial_fit(X, y, classes, sample_weight)

    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ):
        self._break()
        return super().fit(X, y, coef_init, intercept_init, sample_weight)

    def _break(self) -> None:
        if self.alpha == ALPHAS[1]:
            raise ValueError("it breaks")


@some_searches
@pytest.mark.filterwarnings("ignore:One or more of the:UserWarning")
def test_fits_that_fail(kind: str) -> None:
    grid = {"alpha": ALPHAS}
    with pytest.warns(FitFailedWarning, match="it breaks"):
        search = SEARCHES[kind](Breaks(random_state=0), grid, cv=CV).fit(X_CLASS, LABELS)
    failed = np.array([params["alpha"] == ALPHAS[1] for params in search.cv_results_["params"]])
    assert failed.any() and np.isnan(scores(search)[failed]).all()
    assert np.isfinite(scores(search)[~failed]).all() or kind == "race"
    assert search.best_params_["alpha"] != ALPHAS[1]
    with pytest.raises(ValueError, match="it breaks"):
        SEARCHES[kind](Breaks(random_state=0), grid, cv=CV, error_score="raise").fit(X_CLASS, LABELS)


@pytest.mark.cases(3)
@every_search
def test_callbacks_hear_of_every_search(kind: str) -> None:
    search = SEARCHES[kind](SGD, {"alpha": ALPHAS}, cv=CV)
    if not hasattr(search, "set_callbacks"):
        return  # scikit-learn before 1.9
    recorder = Recorder()
    search.set_callbacks(recorder).fit(X_CLASS, LABELS)
    assert recorder.begun[0] == recorder.ended[-1] == "fit"
    assert sorted(recorder.begun) == sorted(recorder.ended)
    inner = "round" if kind in INCREMENTAL else "candidate-split-evaluation"
    assert recorder.begun.count(inner) > 1


def test_a_cluster_gives_the_same_answers() -> None:
    cv = KFold(3, shuffle=True, random_state=0)

    def fit(kind: str) -> Any:
        return SEARCHES[kind](SGD, {"alpha": ALPHAS}, cv=cv).fit(X_CLASS, LABELS)

    here = {kind: fit(kind) for kind in SEARCHES}
    with within(2):
        for kind, ours in here.items():
            there = fit(kind)
            np.testing.assert_array_equal(scores(there), scores(ours), err_msg=kind)
            assert there.best_params_ == ours.best_params_ and there.report_.split_workers, kind


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the:UserWarning")
@pytest.mark.parametrize(
    ("kind", "place"), spread([(kind, place) for kind in WHEREVER for place in ("cluster", "processes")], 1)
)
def test_options_hold_wherever_fits_are_made(kind: str, place: str, tmp_path: Any) -> None:
    """Failing fits, weights, checkpoints, limits of time and callbacks: the same as in this process."""
    cv, grid = KFold(3, shuffle=True, random_state=0), {"alpha": ALPHAS}
    more = {"n_jobs": 2} if place == "processes" else {}
    weights = (np.arange(len(LABELS)) % 3 > 0).astype(float)
    known = SEARCHES[kind](SGD, grid).get_params(deep=False)
    limits = {"time_budget": 1e9, "fit_timeout": 60} if "fit_timeout" in known and kind != "budget" else {}
    options: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
        (Breaks(random_state=0), {"error_score": -1.0}, {}),
        (SGD, limits, {}),
        (SGD, {"checkpoint": tmp_path / "c"} if "checkpoint" in known else {}, {"sample_weight": weights}),
    ]
    plain = [SEARCHES[kind](one, grid, cv=cv).fit(X_CLASS, LABELS, **given) for one, _, given in options]
    plain[0] = SEARCHES[kind](options[0][0], grid, cv=cv, error_score=-1.0).fit(X_CLASS, LABELS)
    with within(2) if place == "cluster" else nullcontext():
        for (model, own, given), here in zip(options, plain, strict=True):
            for _ in range(2 if "checkpoint" in own else 1):
                there = SEARCHES[kind](model, grid, cv=cv, **own, **more).fit(X_CLASS, LABELS, **given)
                np.testing.assert_array_equal(scores(there), scores(here))
                assert there.best_params_ == here.best_params_
            if "checkpoint" in own:
                assert there.report_.fits_restored == there.report_.fits_requested > 0
        if hasattr(there, "set_callbacks"):  # scikit-learn 1.9
            recorder = Recorder()
            heard = SEARCHES[kind](SGD, grid, cv=cv, **more).set_callbacks(recorder).fit(X_CLASS, LABELS)
            np.testing.assert_array_equal(scores(heard), scores(plain[1]))
            assert sorted(recorder.begun) == sorted(recorder.ended)


@some_searches
def test_a_bar_or_lines_show_the_progress(kind: str, capsys: Any) -> None:
    SEARCHES[kind](SGD, {"alpha": ALPHAS}, cv=CV, verbose=1).fit(X_CLASS, LABELS)
    shown = capsys.readouterr()
    assert "calls of partial_fit, best score" in shown.out if kind in INCREMENTAL else "fits" in shown.err


@pytest.mark.invariant("An adaptive search that stops nothing gives the results of the plain search")
@pytest.mark.parametrize(
    "search",
    [
        lambda *given: IncrementalSearchCV(*given, "grid", max_iter=1, cv=CV),
        lambda *given: SuccessiveHalvingSearchCV(*given, "grid", n_initial_iter=1, max_iter=1, cv=CV),
        lambda *given: HalvingGridSearchCV(*given, cv=CV, max_resources=90, min_resources=90, random_state=0),
        lambda *given: GridSearchCV(*given, cv=CV, race=1e9),
        lambda *given: GridSearchCV(*given, cv=CV, time_budget=1e9),
    ],
    ids=["incremental", "successive halving", "halving", "race", "budget"],
)
def test_without_its_stopping_a_search_is_the_plain_one(search: Any) -> None:
    """One call of partial_fit of this estimator is its fit."""
    grid, data = {"alpha": [0.01, 0.1, 1.0, 10.0], "fit_prior": [True, False]}, (abs(X_CLASS), LABELS)
    plain = GridSearchCV(MultinomialNB(), grid, cv=CV).fit(*data)
    found = search(MultinomialNB(), grid).fit(*data)
    for name in ("params", "mean_test_score", "std_test_score", "split3_test_score", "rank_test_score"):
        np.testing.assert_array_equal(found.cv_results_[name], plain.cv_results_[name], err_msg=name)
    assert (found.best_index_, found.best_params_) == (plain.best_index_, plain.best_params_)
    np.testing.assert_array_equal(found.predict_proba(data[0]), plain.predict_proba(data[0]))


SPREAD = {"alpha": [0.01, 0.1, 1.0, 10.0], "fit_prior": [True, False]}


DRAWN: dict[str, Callable[..., Any]] = {
    "hyperband": lambda *given: HyperbandSearchCV(*given, max_iter=1, cv=CV, random_state=0),
    "random halving": lambda *given: HalvingRandomSearchCV(
        *given, n_candidates=5, max_resources=90, min_resources=90, cv=CV, random_state=0
    ),
    "optuna": lambda *given: OptunaSearchCV(*given, n_trials=5, batch_size=2, cv=CV, random_state=0),
}


@pytest.mark.parametrize("kind", [one for one in DRAWN if one in SEARCHES])
def test_without_its_stopping_a_search_of_drawn_settings_scores_them_as_the_plain_one(kind: str) -> None:
    data = (abs(X_CLASS), LABELS)
    found = DRAWN[kind](MultinomialNB(), SPREAD).fit(*data)
    rows = found.cv_results_["params"]
    plain = GridSearchCV(MultinomialNB(), [{k: [v] for k, v in one.items()} for one in rows], cv=CV).fit(
        *data
    )
    for name in ("mean_test_score", "std_test_score", "split3_test_score", "rank_test_score"):
        np.testing.assert_array_equal(found.cv_results_[name], plain.cv_results_[name], err_msg=name)
    assert (found.best_index_, found.best_params_) == (plain.best_index_, plain.best_params_)
    np.testing.assert_array_equal(found.predict_proba(data[0]), plain.predict_proba(data[0]))


@pytest.mark.parametrize("kind", [one for one in SEARCHES if one in ("halving", "random halving", "optuna")])
def test_predictions_of_the_best_setting(kind: str) -> None:
    grid, more = {"alpha": ALPHAS}, {"cv": CV}
    search = SEARCHES[kind](SGD, grid, return_predictions="decision_function", **more).fit(X_CLASS, LABELS)
    last = search.cv_results_["params"][search.best_index_]
    if kind == "optuna":
        plain = GridSearchCV(SGD, {"alpha": [last["alpha"]]}, return_predictions="decision_function", **more)
        plain.fit(X_CLASS, LABELS)
        np.testing.assert_array_equal(search.cv_predictions_, plain.cv_predictions_)
    else:
        accuracies = [
            np.mean(values.argmax(axis=1) == LABELS[rows]) for rows, values in search.cv_predictions_
        ]
        own = [search.cv_results_[f"split{i}_test_score"][search.best_index_] for i in range(4)]
        assert accuracies == own
    with pytest.raises(ValueError, match=r"evaluates settings in rounds\. Ask for those of the best setting"):
        SEARCHES[kind](SGD, grid, return_predictions="all", **more).fit(X_CLASS, LABELS)


class Counted(SGDClassifier):
    """Counts its fits."""

    fits = 0

    def fit(self, X: Any, y: Any, **given: Any) -> Any:
        Counted.fits += 1
        return super().fit(X, y, **given)


def test_a_race_over_several_metrics_needs_one_that_decides_before_the_first_fit() -> None:
    options = {"cv": CV, "scoring": ["accuracy", "f1_macro"], "race": "t-test"}
    for refit in (False, lambda results: 0):
        with pytest.raises(ValueError, match="race compares settings by one score"):
            GridSearchCV(Counted(random_state=0), {"alpha": ALPHAS}, refit=refit, **options).fit(
                X_CLASS, LABELS
            )
    assert Counted.fits == 0
