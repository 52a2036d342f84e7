"""Settings that differ are not taken for equal by a search, whatever their values are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sklearn.model_selection
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline

import manyfit.model_selection
from manyfit.introspection.object_state import keeps_its_parameters
from tests._covering import covering
from tests.behaviour.steps import _odd_values as odd
from tests.units.introspection._scores import X, Y, scores

FINALS = {
    "neighbors": (KNeighborsRegressor(), {"last__n_neighbors": [3, 5]}),  # no family: steps are shared
    "ridge": (Ridge(), {"last__alpha": [0.1, 10.0]}),  # a family, which asks for the steps once a fold
}


def both_scores(model, grid):
    """Scores of each fold and setting: ours and scikit-learn's, which are the same."""
    theirs, _ = scores(sklearn.model_selection, model, grid)
    ours, _ = scores(manyfit.model_selection, model, grid)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    return ours, theirs


@pytest.mark.cases(6)
@pytest.mark.invariant("Equal steps on equal input are fitted once per fold, and only equal ones")
@pytest.mark.parametrize(("last", "case"), covering(FINALS, odd.CASES, strength=1))
def test_settings_that_differ_get_rows_of_their_own(case, last):
    step, values = odd.CASES[case]
    final, more = FINALS[last]
    model = Pipeline([("step", step), ("last", final)])
    ours, theirs = both_scores(model, {"step__value": values, **more})
    if last == "neighbors":
        np.testing.assert_array_equal(ours, theirs)
        assert len(np.unique(theirs.round(9), axis=1).T) > 2 or case == "numbers of other types"


@pytest.mark.cases(3)
@pytest.mark.parametrize("last", FINALS)
@pytest.mark.parametrize(
    ("step", "values"),
    [
        (None, [odd.same_name(0.1), odd.same_name(9.0)]),
        (None, [odd.ByContainer(), odd.ByContainer().set_output(transform="pandas")]),
        (None, [odd.TakesAnything(1, scale=0.1), odd.TakesAnything(1, scale=9.0)]),
        (None, [odd.Delegates(0.1), odd.Delegates(9.0)]),
    ],
    ids=["redefined class", "output container", "keywords", "property"],
)
def test_steps_that_differ_beside_their_parameters(step, values, last):
    final, more = FINALS[last]
    model, grid = Pipeline([("step", step), ("last", final)]), {"step": values, **more}
    _, theirs = both_scores(model, grid)
    assert len(np.unique(theirs.round(9), axis=1).T) == 4


@pytest.mark.parametrize("last", FINALS)
def test_setting_a_parameter_to_what_it_was_may_set_more(last):
    final, more = FINALS[last]
    model = Pipeline([("step", odd.SetsMore(1.0)), ("last", final)])
    grid = [more, {"step__value": [1.0], **more}]
    _, theirs = both_scores(model, grid)
    assert not np.allclose(theirs[:, :2], theirs[:, 2:])


def test_an_attribute_that_a_clone_drops_is_no_setting():
    noted = odd.BySign(1.0)
    noted.note = "of the user"
    model = Pipeline([("step", None), ("last", KNeighborsRegressor())])
    grid = {"step": [noted, odd.BySign(1.0)], "last__n_neighbors": [3, 5]}
    theirs, _ = scores(sklearn.model_selection, model, grid)
    ours, search = scores(manyfit.model_selection, model, grid)
    np.testing.assert_array_equal(ours, theirs)
    assert search.report_.transformer_fits == 3


def test_clones_that_a_class_makes_itself_are_not_shared():
    model = Pipeline([("step", odd.ClonesItself(1.0)), ("last", KNeighborsRegressor())])
    assert not keeps_its_parameters(model[0])
    seen = []

    class Recording(odd.ClonesItself):
        secrets = itertools.count(1.0)

        def fit(self, X, y=None):
            seen.append(self.secret)
            return self

    model.set_params(step=Recording(1.0))
    _, search = scores(manyfit.model_selection, model, {"last__n_neighbors": [1, 3, 5]})
    assert len(set(seen)) == len(seen) == 9 == search.report_.transformer_fits


def test_a_plan_says_why_such_a_step_is_not_shared():
    for step, value, why in (
        (odd.Delegates(1), 2, "Delegates keeps parameters elsewhere than in its attributes"),
        (odd.Calls(odd.Config(1.0)), odd.Config(2.0), "value of Calls holds a Config, of which copies"),
    ):
        model = Pipeline([("step", step), ("last", Ridge())])
        search = manyfit.model_selection.GridSearchCV(
            model, {"step__value": [value], "last__alpha": [0.1, 1.0]}, cv=3
        )
        plan = search.plan(X, Y)
        assert why in str(plan)
        (group,) = plan.groups
        assert group.transformer_fits == 6 == search.fit(X, Y).report_.transformer_fits


# A plan is used by a fit only if nothing has changed since


class Splitter:
    def __init__(self, n):
        self.n = n

    def get_n_splits(self, X=None, y=None, groups=None):
        return 2

    def split(self, X, y=None, groups=None):
        for train, test in KFold(2).split(X):
            yield train[: self.n], test


class Hidden(Splitter):
    """What it is read for is in a slot."""

    __slots__ = ("n",)


@pytest.mark.parametrize("kind", [Splitter, Hidden])
def test_an_object_that_changes_between_plan_and_fit(kind):
    cv = kind(40)
    search = manyfit.model_selection.GridSearchCV(KNeighborsRegressor(), {"n_neighbors": [3, 5]}, cv=cv)
    search.plan(X, Y)
    cv.n = 10
    theirs = sklearn.model_selection.GridSearchCV(KNeighborsRegressor(), {"n_neighbors": [3, 5]}, cv=cv)
    ours = search.fit(X, Y).cv_results_["mean_test_score"]
    # a family sums squares in another order
    np.testing.assert_allclose(ours, theirs.fit(X, Y).cv_results_["mean_test_score"], rtol=1e-14)


def test_a_setting_that_changes_between_plan_and_fit():
    values = [{"scale": 1.0}, {"scale": 3.0}]
    model = Pipeline([("step", odd.Changes({})), ("last", KNeighborsRegressor())])
    search = manyfit.model_selection.GridSearchCV(model, {"step__value": values}, cv=3)
    search.plan(X, Y)
    values[0]["scale"] = 9.0
    theirs = sklearn.model_selection.GridSearchCV(model, {"step__value": values}, cv=3).fit(X, Y)
    ours = search.fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(ours, theirs.cv_results_["mean_test_score"])


def test_masked_data_of_another_mask_are_other_data():
    search = manyfit.model_selection.RandomizedSearchCV(
        KNeighborsRegressor(), {"n_neighbors": [3, 5]}, n_iter=1, cv=3
    )
    search.plan(np.ma.array(X, mask=False), Y)
    frozen = search._frozen
    search.plan(np.ma.array(X, mask=X > 1), Y)
    assert frozen.data is not None and frozen.data != search._frozen.data


@pytest.mark.invariant("Equal steps on equal input are fitted once per fold, and only equal ones")
def test_a_checkpoint_of_other_settings_is_not_restored(tmp_path):
    for one, other in (
        (odd.Delegates(1), odd.Delegates(9)),
        (odd.WithUnit(odd.Forgetful(odd.ONES, 1.0)), odd.WithUnit(odd.Forgetful(odd.ONES, odd.WIDE))),
        (
            odd.ByMask([np.ma.array(odd.ONES, mask=[0, 0, 1])]),
            odd.ByMask([np.ma.array(odd.ONES, mask=[1, 0, 0])]),
        ),
    ):
        path = tmp_path / f"{type(one).__name__}.checkpoint"
        model = Pipeline([("step", one), ("last", KNeighborsRegressor())])
        grid = {"last__n_neighbors": [3, 5]}
        scores(manyfit.model_selection, model, grid, checkpoint=path)
        with pytest.raises(ValueError, match="estimator"):
            scores(manyfit.model_selection, model.set_params(step=other), grid, checkpoint=path)
