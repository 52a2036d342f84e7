"""Subclasses of scikit-learn's searches, and methods that a user has replaced, under `install`."""

from __future__ import annotations

import ast
import inspect
import pickle
import textwrap

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

import manyfit
from manyfit._compat import SEARCH_METHODS
from manyfit._compat import SklearnHalvingGridSearchCV as HalvingGridSearchCV
from tests.installation._searches import ALPHAS, MoreParameters, OwnScore, same


class OwnCandidates(GridSearchCV):
    def _run_search(self, evaluate_candidates, **_):
        evaluate_candidates([{"alpha": 1.0}])
        evaluate_candidates([{"alpha": 2.0}])


class OwnFit(GridSearchCV):
    def fit(self, X, y=None, **params):
        self.began_ = True
        return super().fit(X, y, **params)


class OwnTable(RandomizedSearchCV):
    def _format_results(self, *args, **kwargs):
        return super()._format_results(*args, **kwargs) | {"extra": np.zeros(1)}


class ChoosesLast:
    @staticmethod
    def _select_best_index(refit, refit_metric, results):
        return len(results["params"]) - 1


class Mixed(ChoosesLast, GridSearchCV):
    pass


class OwnRounds(HalvingGridSearchCV):
    def _generate_candidate_params(self):
        return [{"alpha": 1.0}, {"alpha": 2.0}, {"alpha": 4.0}]


class Fixed(RandomizedSearchCV):
    """A subclass that sets parameters by itself, and has another signature."""

    def __init__(self, alphas=(1.0, 2.0)):
        super().__init__(Ridge(), {"alpha": list(alphas)}, n_iter=len(alphas), random_state=0)
        self.alphas = alphas


class AsWhole(GridSearchCV):
    """A subclass that is equal to others, and therefore not hashable."""

    def __eq__(self, other):
        return type(self) is type(other)


OVERRIDES = {
    OwnCandidates: "overrides _run_search",
    OwnFit: "overrides fit",
    OwnRounds: "overrides _generate_candidate_params",
    OwnTable: "overrides _format_results",
    Mixed: "overrides _select_best_index",
}


@pytest.mark.parametrize("cls", OVERRIDES)
def test_subclasses_that_override_what_fit_calls_are_left_to_scikit_learn(cls, regression):
    more = {OwnTable: {"n_iter": 3}, OwnRounds: {"random_state": 0}}.get(cls, {})
    expected, found = (cls(Ridge(), ALPHAS, **more) for _ in range(2))
    expected.fit(*regression)
    with manyfit.installed():
        found.fit(*regression)
    same(expected, found)
    n = len(found.cv_results_["params"]) * 5
    report = manyfit.report_of(found)
    assert report.left_to_sklearn == {f"{cls.__name__} {OVERRIDES[cls]}": n}
    assert (report.fits_requested, report.fits_done, report.fits_shared) == (n, n, 0)
    assert f"because {cls.__name__} {OVERRIDES[cls]}." in str(report)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OwnScore(Ridge(), ALPHAS),
        lambda: MoreParameters(Ridge(), ALPHAS, level=3),
        lambda: Fixed(),
        lambda: AsWhole(Ridge(), ALPHAS),
    ],
)
def test_other_subclasses_are_served(make, regression):
    expected, found = make().fit(*regression), make()
    with manyfit.installed():
        found.fit(*regression)
    assert type(found) is type(expected)
    same(expected, found)
    assert manyfit.report_of(found).fits_shared == manyfit.report_of(found).fits_requested
    copy = pickle.loads(pickle.dumps(found))
    assert type(copy) is type(found) and copy.best_score_ == found.best_score_
    assert manyfit.report_of(copy) is None


def test_reports_belong_to_objects_that_are_equal_but_not_the_same(regression):
    one, other = AsWhole(Ridge(), ALPHAS), AsWhole(Ridge(), {"alpha": [1.0]})
    with manyfit.installed():
        one.fit(*regression), other.fit(*regression)
    assert [manyfit.report_of(search).fits_requested for search in (one, other)] == [15, 5]


def test_methods_of_one_object_count(regression):
    search = GridSearchCV(Ridge(), ALPHAS)
    search._run_search = lambda evaluate, **_: evaluate([{"alpha": 3.0}])
    with manyfit.installed():
        search.fit(*regression)
    assert search.best_params_ == {"alpha": 3.0}
    assert manyfit.report_of(search).left_to_sklearn == {"GridSearchCV overrides _run_search": 5}


def test_a_method_replaced_on_scikit_learns_class_counts(regression, monkeypatch):
    """As mocks and other libraries do; the shadow, which derives from the class, calls the new one, too."""
    base = GridSearchCV.__mro__[1]
    theirs, calls = base._format_results, []

    def format_results(self, *args, **kwargs):
        calls.append(1)
        return theirs(self, *args, **kwargs)

    monkeypatch.setattr(base, "_format_results", format_results)
    with manyfit.installed():
        search = GridSearchCV(Ridge(), ALPHAS).fit(*regression)
    assert calls and manyfit.report_of(search) is not None


@pytest.mark.parametrize("base", [GridSearchCV.__mro__[1], HalvingGridSearchCV])
def test_all_methods_that_scikit_learns_fit_calls_are_known(base):
    todo, found = ["fit", "_run_search"], set()
    while todo:
        name = todo.pop()
        own = [vars(one)[name] for one in base.__mro__ if "_search" in one.__module__ and name in vars(one)]
        read = {
            node.attr
            for function in own
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"
        }
        new = {name for name in read if inspect.isfunction(getattr(base, name, None))} - found
        found |= new
        todo += new
    assert "_get_scorers" in found
    assert found <= set(SEARCH_METHODS)
