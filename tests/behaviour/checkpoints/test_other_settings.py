"""A checkpoint serves searches that differ in their settings alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import randint
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from manyfit.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from tests._same_results import X, Y
from tests.behaviour.checkpoints._exact import exactly
from tests.behaviour.steps._counted import FITS, Counted


def counted(values, path, **options):
    FITS.clear()
    return GridSearchCV(Counted(), {"a": values}, cv=2, checkpoint=path, refit=False, **options).fit(X, Y)


def test_new_settings_are_fitted_and_the_others_restored(path):
    counted([0.5, 1.0], path)
    values = [2.0, 1.0, 3.0, 0.5]  # in another order
    more = counted(values, path)
    assert sorted(FITS) == [2.0, 2.0, 3.0, 3.0]
    assert (more.report_.fits_restored, more.report_.fits_done) == (4, 4)
    exactly(more, counted(values, None))
    assert counted([3.0], path).report_.fits_restored == 2 and FITS == []


def test_a_setting_that_comes_twice_counts_twice(path):
    counted([1.0, 1.0], path)
    assert FITS == [1.0] * 4
    again = counted([1.0, 2.0, 1.0, 1.0], path)
    assert sorted(FITS) == [1.0, 1.0, 2.0, 2.0] and again.report_.fits_restored == 4


def test_a_randomized_search_goes_on_with_more_draws(path):
    space = {"max_depth": randint(1, 30), "min_samples_leaf": randint(1, 9)}
    tree = DecisionTreeRegressor(random_state=0)

    def drawn(n, path):
        return RandomizedSearchCV(tree, space, n_iter=n, cv=2, random_state=0, checkpoint=path).fit(X, Y)

    drawn(3, path)
    more = drawn(5, path)
    assert (more.report_.fits_restored, more.report_.fits_requested) == (6, 10)
    exactly(more, drawn(5, None))


@pytest.mark.parametrize("n", [1, 2])
def test_shared_work_runs_again_for_a_group_that_has_grown(n, path):
    alphas = np.logspace(-2, 2, 4)
    GridSearchCV(Ridge(), {"alpha": alphas[:n]}, checkpoint=path).fit(X, Y)
    more = GridSearchCV(Ridge(), {"alpha": alphas}, checkpoint=path).fit(X, Y)
    assert (more.report_.fits_restored, more.report_.fits_shared) == (0, 20)
    exactly(more, GridSearchCV(Ridge(), {"alpha": alphas}).fit(X, Y))
    assert GridSearchCV(Ridge(), {"alpha": alphas}, checkpoint=path).fit(X, Y).report_.fits_restored == 20


@pytest.mark.invariant("A checkpoint serves its own search and no other")
def test_a_halving_search_is_the_same_one_only_with_all_its_settings(path):
    def halving(values):
        grid = {"max_depth": values}
        return HalvingGridSearchCV(
            DecisionTreeRegressor(random_state=0), grid, cv=2, random_state=0, checkpoint=path
        ).fit(X, Y)

    halving([1, 2, 3])
    with pytest.raises(ValueError, match=r"Differences:\n(.*\n)*- settings: 3 settings"):
        halving([1, 2, 3, 4])
