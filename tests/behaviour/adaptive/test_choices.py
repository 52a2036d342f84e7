"""`one_standard_error` and `cheapest_within` choose as their definitions say, in our searches and others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn import model_selection
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from manyfit.model_selection import GridSearchCV, SearchCurveDisplay, cheapest_within, one_standard_error
from tests._same_results import X, Y, both

TREE = DecisionTreeRegressor(random_state=0)
DEPTHS = {"max_depth": [None, 1, 2, 3, 4, 6]}


def table(mean, folds=None, **params):
    """A ``cv_results_`` with two splits half a unit off the mean, or with other splits."""
    mean = np.asarray(mean, dtype=float)
    folds = np.stack([mean - 0.5, mean + 0.5], axis=1) if folds is None else np.asarray(folds)
    settings = [dict(zip(params, values, strict=True)) for values in zip(*params.values(), strict=True)]
    splits = {f"split{i}_test_score": folds[:, i] for i in range(folds.shape[1])}
    return {"params": settings, "mean_test_score": mean, **splits}


def by_definition(search, simpler):
    """The simplest of the settings that reach the best mean less its standard error, one by one."""
    results = search.cv_results_
    folds = np.array([results[f"split{i}_test_score"] for i in range(search.n_splits_)]).T
    best = max(range(len(folds)), key=lambda row: folds[row].mean())
    good = [
        row for row in range(len(folds)) if folds[row].mean() >= folds[best].mean() - stats.sem(folds[best])
    ]
    return min(good, key=lambda row: (simpler(results["params"][row]), -folds[row].mean()))


def test_the_simplest_within_one_standard_error_of_the_best():
    search = both(Ridge(), {"alpha": np.logspace(-2, 3, 20)}, refit=one_standard_error())
    expected = by_definition(search, lambda params: -params["alpha"])
    assert search.best_index_ == expected != int(np.argmax(search.cv_results_["mean_test_score"]))
    by_mean = GridSearchCV(Ridge(), search.param_grid).fit(X, Y)
    assert search.best_index_ == SearchCurveDisplay.from_search(by_mean).simplest_candidate


def test_no_limit_is_the_least_simple():
    search = both(TREE, DEPTHS, refit=one_standard_error("max_depth"), cv=4)
    assert search.best_index_ == by_definition(search, lambda one: one["max_depth"] or np.inf)


def test_earlier_parameters_count_more():
    grid = {**DEPTHS, "min_samples_leaf": [1, 2, 4, 8]}
    simpler = {"min_samples_leaf": "larger", "max_depth": "smaller"}
    search = GridSearchCV(TREE, grid, refit=one_standard_error(simpler)).fit(X, Y)
    expected = by_definition(search, lambda one: (-one["min_samples_leaf"], one["max_depth"] or np.inf))
    assert search.best_index_ == expected


def test_it_serves_searches_of_scikit_learn_and_can_be_pickled_and_cloned():
    theirs = model_selection.GridSearchCV(TREE, DEPTHS, refit=one_standard_error())
    ours = GridSearchCV(TREE, DEPTHS, refit=pickle.loads(pickle.dumps(one_standard_error())))
    assert clone(ours).fit(X, Y).best_params_ == theirs.fit(X, Y).best_params_
    assert one_standard_error("alpha") == one_standard_error({"alpha": "larger"})


@pytest.mark.parametrize(
    ("mean", "tolerance", "row"),
    [([1.0, 0.9, 0.5], 0.1, 0), ([0.5, 0.9, 1.0], 0.1 + 1e-12, 1), ([0.5, 0.9, 1.0], 0.05, 2),
     ([0.2, np.nan, 1.0], 0.9, 0), ([np.nan, np.nan, np.nan], 1.0, 0), ([np.nan, 0.9, 1.0], 0.2, 1)],
)  # fmt: skip
def test_the_cheapest_within_a_tolerance(mean, tolerance, row):
    assert cheapest_within(tolerance, "n")(table(mean, n=[1, 2, 3])) == row
    assert cheapest_within(tolerance, lambda params: params["n"] ** 2)(table(mean, n=[1, 2, 3])) == row


def test_none_as_tolerance_is_one_standard_error():
    folds = [[0.7, 0.8], [0.6, 1.0], [0.9, 1.0]]  # of the best 0.05
    results = table(np.mean(folds, axis=1), folds, n=[1, 2, 3])
    assert cheapest_within(None, "n")(results) == 2
    results["mean_test_score"] = np.array([0.9, 0.91, 0.95])
    assert cheapest_within(None, "n")(results) == 0


def test_times_are_costs_too():
    results = table([0.9, 0.95, 1.0], n=[1, 2, 3])
    results |= {"mean_score_time": np.array([3.0, 1.0, 2.0]), "mean_fit_time": np.array([1.0, 3.0, 2.0])}
    assert cheapest_within(1.0)(results) == 1
    assert cheapest_within(1.0, "fit_time")(results) == 0


def test_among_equally_cheap_ones_the_best_is_chosen():
    assert cheapest_within(1.0, "n")(table([0.9, 0.95, 1.0], n=[1, 1, 2])) == 1
    assert cheapest_within(1.0, "n")(table([1.0, 1.0, 1.0], n=[1, 1, 1])) == 0


def test_one_split_has_no_standard_error():
    results = table([0.99, 1.0], [[0.99], [1.0]], alpha=[2.0, 1.0])
    assert one_standard_error()(results) == 1


def test_only_the_last_round_of_a_halving_search_counts():
    results = table([5.0, 4.0, 0.9, 1.0], alpha=[1.0, 9.0, 1.0, 2.0])
    results["iter"] = np.array([0, 0, 1, 1])
    assert one_standard_error()(results) == 3


def test_a_metric_is_named_if_the_search_has_several():
    results = table([1.0, 0.9], n=[1, 2])
    results["mean_test_r2"], results["split0_test_r2"] = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    assert cheapest_within(0.0, "n", metric="r2")(results) == 1
    with pytest.raises(ValueError, match="metric=None is none of .* Set metric to one of 'score', 'r2'"):
        cheapest_within(0.0, "n")(results)


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="whether smaller or larger values of 'gamma' .* is not known"):
        one_standard_error("gamma")
    with pytest.raises(ValueError, match="'smaller' or 'larger', got"):
        one_standard_error({"C": "less"})
    with pytest.raises(ValueError, match="tolerance has to be 0 or more, or None, got -1"):
        cheapest_within(-1)
    with pytest.raises(ValueError, match="varies gamma; none of them is known"):
        one_standard_error()(table([1.0, 0.9], gamma=[1, 2]))
    with pytest.raises(ValueError, match=r"'alpha' and 'degree' of them are .*\({'alpha': 'larger'"):
        one_standard_error()(table([1.0, 0.9], alpha=[1, 2], degree=[1, 2]))
    for given in (["C"], {}, 3):
        with pytest.raises(ValueError, match="simpler has to map parameters"):
            one_standard_error(given)
    with pytest.raises(ValueError, match="tolerance has to be 0 or more, or None, got 'C'"):
        cheapest_within("C")
    with pytest.raises(ValueError, match="max_depth='deep' is not a number"):
        one_standard_error()(table([1.0, 0.9], max_depth=["deep", 2]))
    with pytest.raises(ValueError, match="a setting lacks the parameter 'C'"):
        one_standard_error("C")(table([1.0, 0.9], max_depth=[1, 2]))


@pytest.mark.parametrize("choice", [one_standard_error, cheapest_within])
def test_a_choice_without_its_parentheses_says_so(choice):
    with pytest.raises(ValueError, match=rf"set refit={choice.__name__}\(\), with parentheses"):
        choice(table([1.0, 0.9], alpha=[1, 2]))


def test_one_setting_without_parameters_is_chosen():
    assert one_standard_error()({"params": [{}], "mean_test_score": [1.0], "split0_test_score": [1.0]}) == 0


def test_a_choice_is_shown_as_it_was_called():
    assert repr(one_standard_error()) == "one_standard_error()"
    assert repr(cheapest_within(0.1, "alpha", metric="r2")) == (
        "cheapest_within(tolerance=0.1, metric='r2', cost='alpha')"
    )
