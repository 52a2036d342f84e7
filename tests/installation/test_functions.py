"""cross_validate and its relatives of scikit-learn's under `install`, against themselves without."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)

import manyfit
from manyfit.installation import _functions

SERVED = {
    "scores": partial(cross_val_score, Ridge(), cv=4),
    "validation": partial(cross_validate, Ridge(), return_train_score=True, return_indices=True),
    "curve": partial(validation_curve, Ridge(), param_name="alpha", param_range=[0.1, 1.0, 10.0]),
    "sizes": partial(learning_curve, Ridge(), train_sizes=[0.5, 1.0]),
    "workers": partial(cross_val_score, Ridge(), n_jobs=2),
}
SKLEARNS = {
    "predictions": partial(cross_val_predict, Ridge()),
    "permutations": partial(permutation_test_score, Ridge(), n_permutations=3, random_state=0),
    "increments": partial(
        learning_curve, SGDRegressor(random_state=0), exploit_incremental_learning=True, cv=2
    ),
}


def numbers(found) -> list[np.ndarray]:
    """All arrays that a function returns, without seconds."""
    if isinstance(found, dict):
        found = [value for name, value in found.items() if "_time" not in name and name != "indices"]
    return [np.asarray(one) for one in (found if isinstance(found, list | tuple) else [found])]


@pytest.mark.parametrize("name", [*SERVED, *SKLEARNS])
def test_numbers_are_scikit_learns(name, regression):
    function = {**SERVED, **SKLEARNS}[name]  # a partial that was made before
    expected, before = numbers(function(X=regression[0], y=regression[1])), manyfit.last_report()
    with manyfit.installed():
        found = numbers(function(X=regression[0], y=regression[1]))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    if name in SERVED:
        assert manyfit.last_report() is not before
        assert manyfit.last_report().fits_shared == manyfit.last_report().fits_requested > 0
    else:
        assert manyfit.last_report() is before


def test_options_reach_the_functions(regression):
    with manyfit.installed(sharing="none"):
        cross_val_score(Ridge(), *regression)
    assert manyfit.last_report().fits_shared == 0
    with manyfit.installed():
        cross_val_score(Ridge(), *regression)
    assert manyfit.last_report().fits_shared == 5


@pytest.mark.parametrize("cv", [ShuffleSplit(4), KFold(4, shuffle=True)])
@pytest.mark.parametrize("estimator", [RandomForestRegressor(3), Ridge()])
def test_numpys_global_random_state_is_used_as_by_scikit_learn(cv, estimator, regression):
    """Splits and fits take turns; where only one of them draws, the fits are served."""

    def run():
        np.random.seed(3)
        return cross_val_score(estimator, *regression, cv=cv), np.random.rand()

    expected, expected_next = run()
    with manyfit.installed():
        found, found_next = run()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found_next == expected_next
    why = manyfit.last_report().left_to_sklearn
    assert (why == {}) == isinstance(estimator, Ridge)
    assert why == {} or "global random state" in str(why)


def test_splits_that_fill_the_memory_are_drawn_one_by_one(regression, monkeypatch):
    X, y = regression[0][:40], regression[1][:40]
    scoring = "neg_mean_squared_error"
    expected = cross_val_score(Ridge(), X, y, cv=LeaveOneOut(), scoring=scoring)
    with manyfit.installed():
        served = cross_val_score(Ridge(), X, y, cv=LeaveOneOut(), scoring=scoring)
        assert manyfit.last_report().left_to_sklearn == {}
        monkeypatch.setattr(_functions, "MOST_SPLIT_BYTES", 10 * 40 * 8)
        found = cross_val_score(Ridge(), X, y, cv=LeaveOneOut(), scoring=scoring)
    assert manyfit.last_report().left_to_sklearn == {"rows of too many splits for memory": 40}
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(served, expected, rtol=1e-9)


def test_foreign_data_are_left_to_scikit_learn(regression):
    class Array(np.ndarray):
        pass

    with manyfit.installed():
        found = cross_val_score(Ridge(), regression[0].view(Array), regression[1])
    assert len(found) == 5
    ((why, n),) = manyfit.last_report().left_to_sklearn.items()
    assert why.startswith("data of the type ") and n == 5


@pytest.mark.parametrize("function", [cross_val_score, cross_val_predict])
def test_errors_are_scikit_learns(function, regression):
    def outcome():
        with pytest.raises(Exception) as error:
            function(
                Ridge(alpha=-1.0),
                *regression,
                **({"error_score": "raise"} if function is cross_val_score else {}),
            )
        return type(error.value), str(error.value)

    expected = outcome()
    with manyfit.installed():
        assert outcome() == expected
