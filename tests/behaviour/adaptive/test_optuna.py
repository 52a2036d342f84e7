"""OptunaSearchCV evaluates settings that a sampler of Optuna chooses by the scores of earlier batches."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import GridSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.trial import TrialState
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV as SklearnGridSearchCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import OptunaSearchCV
from manyfit.model_selection.search.adaptive._optuna_space import as_space

X, Y = load_iris(return_X_y=True)
TREE = DecisionTreeClassifier(random_state=0)
SPACE = {"max_depth": IntDistribution(1, 6), "min_samples_leaf": [1, 5, 20]}


def values_of(study: Any) -> list[Any]:
    return [one.values for one in study.trials]


def test_a_grid_sampler_gives_the_answers_of_a_grid_search() -> None:
    grid = {"max_depth": [1, 2, 3], "min_samples_leaf": [1, 20]}
    sampler = GridSampler(grid, seed=0)
    search = OptunaSearchCV(TREE, grid, n_trials=6, batch_size=4, sampler=sampler).fit(X, Y)
    theirs = SklearnGridSearchCV(TREE, grid).fit(X, Y)
    row = {str(params): c for c, params in enumerate(theirs.cv_results_["params"])}
    order = [row[str(params)] for params in search.cv_results_["params"]]
    assert sorted(order) == list(range(6))
    for name in ("mean_test_score", "std_test_score", "split3_test_score"):
        np.testing.assert_array_equal(search.cv_results_[name], theirs.cv_results_[name][order])
    assert search.best_score_ == theirs.best_score_
    assert list(search.cv_results_["trial_number"]) == list(range(6))
    assert values_of(search.study_) == [[value] for value in search.cv_results_["mean_test_score"]]
    assert search.predict(X).shape == Y.shape and search.study_.best_value == search.best_score_


def test_the_sampler_learns_between_batches_as_if_optuna_ran_it() -> None:
    def objective(trial: Any) -> float:
        params = {"max_depth": trial.suggest_int("max_depth", 1, 6)}
        params["min_samples_leaf"] = trial.suggest_categorical("min_samples_leaf", [1, 5, 20])
        return float(cross_val_score(clone(TREE).set_params(**params), X, Y).mean())

    study = optuna.create_study(direction="maximize", sampler=TPESampler(seed=3, n_startup_trials=4))
    study.optimize(objective, n_trials=12)
    own = TPESampler(seed=3, n_startup_trials=4)
    search = OptunaSearchCV(TREE, SPACE, n_trials=12, batch_size=1, sampler=own).fit(X, Y)
    assert [one.params for one in search.study_.trials] == [one.params for one in study.trials]
    assert values_of(search.study_) == values_of(study)


def test_the_same_seed_gives_the_same_search_and_a_plan_shows_its_first_batch() -> None:
    search = OptunaSearchCV(TREE, SPACE, n_trials=12, batch_size=5, random_state=1)
    plan = search.plan(X, Y)
    assert "first of 3 batches" in str(plan) and plan.n_candidates == 5
    first = search.fit(X, Y).cv_results_["params"]
    assert search.fit(X, Y).cv_results_["params"] == first
    assert pickle.loads(pickle.dumps(search)).best_params_ == search.best_params_


def test_a_batch_shares_its_work() -> None:
    space = {"alpha": stats.loguniform(1e-3, 1e3), "fit_intercept": [True, False]}
    search = OptunaSearchCV(Ridge(), space, n_trials=16, random_state=0).fit(X, Y)
    assert search.report_.fits_done == 0 and search.report_.passes == 2
    params = search.cv_results_["params"]
    theirs = [cross_val_score(Ridge(**one), X, Y).mean() for one in params]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], theirs, rtol=1e-10)


def test_a_setting_that_comes_again_is_told_its_scores_and_not_fitted() -> None:
    sampler = RandomSampler(seed=0)
    search = OptunaSearchCV(TREE, {"max_depth": [1, 2]}, n_trials=20, batch_size=3, sampler=sampler).fit(X, Y)
    assert len(search.cv_results_["params"]) == 2 and search.report_.fits_requested == 10
    told = {(one.params["max_depth"], one.value) for one in search.study_.trials}
    assert len(search.study_.trials) == 20 and len(told) == 2


def test_spaces_of_every_kind() -> None:
    steps = [StandardScaler(), MinMaxScaler(), "passthrough"]
    space = {
        "svc__C": stats.loguniform(1e-2, 1e2),
        "svc__tol": stats.uniform(1e-4, 1e-3),
        "svc__degree": stats.randint(2, 5),
        "svc__coef0": stats.norm(0, 1),
        "svc__gamma": FloatDistribution(1e-3, 1, log=True),
        "svc__shrinking": np.array([True, False]),
        "standardscaler": steps,
    }
    pipe = make_pipeline(StandardScaler(), SVC())
    search = OptunaSearchCV(pipe, space, n_trials=8, random_state=0).fit(X, Y)
    for one in search.cv_results_["params"]:
        assert 1e-2 <= one["svc__C"] <= 1e2 and 1e-4 <= one["svc__tol"] <= 1.1e-3
        assert one["svc__degree"] in (2, 3, 4) and type(one["svc__degree"]) is int
        assert np.isfinite(one["svc__coef0"]) and type(one["svc__shrinking"]) is bool
        assert any(one["standardscaler"] is step for step in steps)
    quantile = as_space({"a": stats.gamma(2.0)})["a"]
    assert quantile.value(0.25) == stats.gamma(2.0).ppf(0.25)
    assert as_space({"a": stats.poisson(3)})["a"].value(0.5) == 3
    for one, lowest in ((stats.poisson(3), 0), (stats.binom(4, 0.5), 0), (stats.geom(0.5), 1)):
        value = as_space({"a": one})["a"].value(0.0)
        assert value == lowest and type(value) is int, "scipy's quantile 0 is one less, and a float"
    with pytest.raises(ValueError, match=r"the distribution of 'a' is none with \(0, -1\)"):
        as_space({"a": stats.uniform(0, -1)})
    shifted = as_space({"a": stats.loguniform(1, 100, loc=5)})["a"]
    assert shifted.value(0.5) == stats.loguniform(1, 100, loc=5).median()


def test_equal_values_of_other_types_are_others_to_the_study() -> None:
    """One feature (1) and all of them (1.0)."""
    space = {"max_features": [1, 1.0, 2]}
    search = OptunaSearchCV(TREE, space, n_trials=12, sampler=RandomSampler(seed=0)).fit(X, Y)
    rows = search.cv_results_["params"]
    assert sorted(repr(one["max_features"]) for one in rows) == ["1", "1.0", "2"]
    told = {one.params["max_features"]: one.value for one in search.study_.trials}
    for params, score in zip(rows, search.cv_results_["mean_test_score"], strict=True):
        assert score == cross_val_score(clone(TREE).set_params(**params), X, Y).mean()
        (own,) = (value for text, value in told.items() if text.endswith(f": {params['max_features']!r}"))
        assert own == score
    assert as_space({"a": [1, 1, 2]})["a"].distribution.choices == (1, 1, 2)


def conditional(trial: Any) -> dict[str, Any]:
    kernel = trial.suggest_categorical("kernel", ["linear", "rbf"])
    return {"kernel": kernel} | ({"gamma": trial.suggest_float("gamma", 0.01, 1)} if kernel == "rbf" else {})


def pruned_at_once(trial: Any) -> dict[str, Any]:
    raise optuna.TrialPruned


def test_a_function_of_the_trial_draws_a_conditional_space() -> None:
    search = OptunaSearchCV(SVC(), conditional, n_trials=10, random_state=0).fit(X, Y)
    rows = search.cv_results_["params"]
    assert {len(one) for one in rows} == {1, 2} and all(("gamma" in one) == (len(one) == 2) for one in rows)

    def pruned(trial: Any) -> dict[str, Any]:
        params = conditional(trial)
        if params["kernel"] == "linear":
            raise optuna.TrialPruned
        return params

    search = OptunaSearchCV(SVC(), pruned, n_trials=10, random_state=0).fit(X, Y)
    assert all(one["kernel"] == "rbf" for one in search.cv_results_["params"])
    states = {one.state for one in search.study_.trials}
    assert states == {TrialState.PRUNED, TrialState.COMPLETE}
    with pytest.raises(ValueError, match="has pruned all 3 trials"):
        OptunaSearchCV(SVC(), pruned_at_once, n_trials=3).fit(X, Y)
    with pytest.raises(TypeError, match="has to return a dict of parameters, got None"):
        OptunaSearchCV(SVC(), lambda trial: None, n_trials=2).fit(X, Y)


def test_several_metrics() -> None:
    scoring = ["accuracy", "neg_log_loss"]
    sampler = NSGAIISampler(seed=0, population_size=4)
    options: dict[str, Any] = {"scoring": scoring, "n_trials": 8, "batch_size": 4, "sampler": sampler}
    search = OptunaSearchCV(TREE, SPACE, refit=False, **options).fit(X, Y)
    columns = [search.cv_results_[f"mean_test_{name}"] for name in scoring]
    told = {one.number: one.values for one in search.study_.trials}
    numbers = search.cv_results_["trial_number"]
    assert [told[number] for number in numbers] == np.column_stack(columns).tolist()
    assert len(search.study_.best_trials) >= 1
    one = OptunaSearchCV(TREE, SPACE, refit="neg_log_loss", random_state=0, scoring=scoring, n_trials=4)
    assert (
        one.fit(X, Y).study_.best_value == one.best_score_ == one.cv_results_["mean_test_neg_log_loss"].max()
    )
    with pytest.raises(ValueError, match="prune=True needs one metric"):
        OptunaSearchCV(TREE, SPACE, refit=False, prune=True, **options).fit(X, Y)


def both(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    return {"a": estimator.score(X, y), "b": 1 - estimator.score(X, y)}


def test_a_function_that_returns_several_scores() -> None:
    search = OptunaSearchCV(TREE, SPACE, scoring=both, refit="b", n_trials=4, random_state=0).fit(X, Y)
    assert search.best_score_ == search.cv_results_["mean_test_b"].max() == search.study_.best_value
    for refit in (False, "c"):
        with pytest.raises(ValueError, match=f"function that returns several scores.*got refit={refit!r}"):
            OptunaSearchCV(TREE, SPACE, scoring=both, refit=refit, n_trials=4).fit(X, Y)


def test_a_study_goes_on_and_its_best_trial_takes_part(tmp_path: Any) -> None:
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(tmp_path / "log"))
    )
    study = optuna.create_study(storage=storage, study_name="one", direction="maximize")
    OptunaSearchCV(TREE, SPACE, n_trials=5, study=study).fit(X, Y)
    again = optuna.load_study(storage=storage, study_name="one", sampler=TPESampler(seed=0))
    best = again.best_value
    search = OptunaSearchCV(TREE, SPACE, n_trials=3, study=again)
    plan = search.plan(X, Y)
    assert plan.n_candidates == 3 and len(again.trials) == 5
    search.fit(X, Y)
    assert len(again.trials) == 8 and search.study_ is again
    assert search.best_score_ >= best and search.best_score_ == again.best_value


def test_a_study_goes_on_in_a_space_that_lacks_its_best_trial() -> None:
    space = {"max_depth": IntDistribution(1, 4), "min_samples_leaf": [1, 20]}
    study = optuna.create_study(direction="maximize", sampler=RandomSampler(seed=0))
    OptunaSearchCV(TREE, space, n_trials=6, study=study).fit(X, Y)
    before = study.best_params["max_depth"]
    narrow = space | {"max_depth": IntDistribution(before + 1, before + 2)}
    search = OptunaSearchCV(TREE, narrow, n_trials=4, study=study).fit(X, Y)
    assert all(before < one["max_depth"] <= before + 2 for one in search.cv_results_["params"])
    assert len(study.trials) == 10


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores"
)
def test_failed_fits_and_an_interrupted_search_leave_no_trial_open() -> None:
    space = {"max_depth": [-5, 2]}
    sampler = RandomSampler(seed=0)
    search = OptunaSearchCV(TREE, space, n_trials=6, sampler=sampler).fit(X, Y)
    found = {one.params["max_depth"]: one.state for one in search.study_.trials}
    assert found == {-5: TrialState.FAIL, 2: TrialState.COMPLETE} and search.best_params_ == {"max_depth": 2}
    study = optuna.create_study(direction="maximize", sampler=sampler)
    with pytest.raises(ValueError, match="max_depth"):
        OptunaSearchCV(TREE, space, n_trials=6, study=study, error_score="raise").fit(X, Y)
    assert {one.state for one in study.trials} == {TrialState.FAIL}


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("scoring", [None, lambda model, X, y: {"a": model.score(X, y)}])
def test_a_first_batch_whose_fits_fail_does_not_end_the_search(scoring: Any, prune: bool) -> None:
    pruner = optuna.pruners.NopPruner()
    study = optuna.create_study(direction="maximize", pruner=pruner)
    for depth in (-5, 2, 3):
        study.enqueue_trial({"max_depth": depth})
    options = {"batch_size": 1, "scoring": scoring, "refit": "a" if scoring else True, "prune": prune}
    search = OptunaSearchCV(TREE, {"max_depth": [-5, 2, 3]}, n_trials=3, study=study, **options)
    n_failed = 1 if prune else 5
    with pytest.warns(FitFailedWarning, match=f"{n_failed} fits failed out of a total of {10 + n_failed}"):
        search.fit(X, Y)
    states = [trial.state for trial in study.trials]
    assert states == [TrialState.PRUNED if prune else TrialState.FAIL, *[TrialState.COMPLETE] * 2]
    means = search.cv_results_["mean_test_a" if scoring else "mean_test_score"]
    expected = [cross_val_score(clone(TREE).set_params(max_depth=depth), X, Y).mean() for depth in (2, 3)]
    np.testing.assert_array_equal(means, [np.nan, *expected])
    search = OptunaSearchCV(TREE, {"max_depth": [-5]}, n_trials=2, **options)
    with pytest.raises(ValueError, match=f"All the {n_failed} fits failed"):
        search.fit(X, Y)
    assert len(search.study_.trials) == 2 and all(one.state.is_finished() for one in search.study_.trials)


def test_scores_of_a_function_that_fails_at_first() -> None:
    def scoring(model: Any, X: Any, y: Any) -> dict[str, float]:
        if model.max_depth == 1:
            raise ValueError("too flat")
        return {"a": model.score(X, y)}

    grid = {"max_depth": [1, 2]}
    study = optuna.create_study(direction="maximize", sampler=GridSampler(grid, seed=0))
    study.enqueue_trial({"max_depth": 1})
    options = {"scoring": scoring, "refit": "a", "error_score": 0.25, "return_train_score": True}
    search = OptunaSearchCV(TREE, grid, n_trials=3, batch_size=1, study=study, **options)
    with pytest.warns(UserWarning, match="too flat"):
        search.fit(X, Y)
    expected = cross_val_score(clone(TREE).set_params(max_depth=2), X, Y).mean()
    assert search.best_params_ == {"max_depth": 2} and search.best_score_ == expected
    assert search.cv_results_["mean_test_a"][0] == search.cv_results_["mean_train_a"][0] == 0.25
    assert values_of(study)[0] == [0.25]


def test_a_pruner_is_asked_after_each_split() -> None:
    class AfterTwo(optuna.pruners.BasePruner):
        def prune(self, study: Any, trial: Any) -> bool:
            return trial.params["max_depth"] == 1 and len(trial.intermediate_values) == 2

    study = optuna.create_study(direction="maximize", sampler=RandomSampler(seed=0), pruner=AfterTwo())
    space = {"max_depth": IntDistribution(1, 3)}
    for depth in (3, 2, 1):
        study.enqueue_trial({"max_depth": depth})
    search = OptunaSearchCV(TREE, space, n_trials=3, batch_size=2, study=study, prune=True).fit(X, Y)
    (one,) = search.report_.dropped
    assert one["params"] == {"max_depth": 1} and one["fits"] == 2
    assert search.cv_results_["params"][one["candidate"]] == {"max_depth": 1}
    states = {trial.params["max_depth"]: trial.state for trial in study.trials}
    assert states == {1: TrialState.PRUNED, 2: TrialState.COMPLETE, 3: TrialState.COMPLETE}
    full = study.trials[0]
    assert full.intermediate_values == dict(enumerate(cross_val_score(TREE.set_params(max_depth=3), X, Y)))


def test_a_new_study_prunes_by_wilcoxon_once_it_knows_a_better_trial() -> None:
    space = {"max_depth": [1, 4], "min_samples_leaf": [1, 2]}
    sampler = GridSampler(space, seed=2)
    search = OptunaSearchCV(TREE, space, n_trials=9, batch_size=1, cv=10, prune=True, sampler=sampler).fit(
        X, Y
    )
    assert isinstance(search.study_.pruner, optuna.pruners.WilcoxonPruner)
    rows, dropped = search.cv_results_["params"], {one["candidate"] for one in search.report_.dropped}
    first = next(c for c, one in enumerate(rows) if one["max_depth"] == 4)
    assert dropped == {c for c, one in enumerate(rows) if one["max_depth"] == 1 and c > first} != set()
    assert len(search.study_.trials) == 4  # the sampler has no more settings


def test_no_trial_is_asked_for_after_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    search = OptunaSearchCV(TREE, SPACE, n_trials=1000, batch_size=2, random_state=0, time_budget=0.3).fit(
        X, Y
    )
    assert 2 <= len(search.study_.trials) < 1000 and np.isfinite(search.best_score_)
    search.set_params(time_budget=1e-9).fit(X, Y)
    assert len(search.study_.trials) == 2 and np.isfinite(search.best_score_), "at least one is evaluated"


def test_what_cannot_be_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"param_distributions": {}}, TypeError, "dict of lists and distributions"),
        ({"param_distributions": {"max_depth": 3}}, TypeError, "'max_depth' has to be a list"),
        ({"param_distributions": {"max_depth": []}}, ValueError, "'max_depth' is empty"),
        ({"param_distributions": {"depth": [1]}}, ValueError, "Invalid parameter"),
        ({"n_trials": 0}, ValueError, "'n_trials' parameter of OptunaSearchCV"),
        ({"study": optuna.create_study()}, ValueError, "has to have the directions.*got .'MINIMIZE'"),
        (
            {"study": optuna.create_study(direction="maximize"), "sampler": RandomSampler()},
            ValueError,
            "give `sampler` or `study`",
        ),
        ({"sampler": "tpe"}, TypeError, "sampler has to be a sampler of Optuna's, or None, got 'tpe'"),
    ]
    for options, kind, text in wrong:
        with pytest.raises(kind, match=text):
            OptunaSearchCV(TREE, **({"param_distributions": SPACE} | options)).fit(X, Y)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'manyfit\[optuna\]'"):
        OptunaSearchCV(TREE, SPACE).fit(X, Y)
