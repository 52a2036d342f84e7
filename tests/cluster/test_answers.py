"""Searches on a cluster have the answers of the local run."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import cross_validate as sklearn_validate

from manyfit.model_selection import GridSearchCV, cross_validate
from tests._covering import covering
from tests.cluster._clusters import within
from tests.cluster._searches import SEARCHES, TREE, X, Y, same


@pytest.fixture
def inside(request):
    with within(request.param) as client:
        yield client


@pytest.mark.cases(3)
@pytest.mark.invariant("Scores do not depend on the number of workers")
@pytest.mark.parametrize(("kind", "inside"), covering(SEARCHES, [1, 2, 3], strength=1), indirect=["inside"])
def test_answers_are_those_of_the_local_run(kind, inside):
    estimator, grid = SEARCHES[kind]
    params = {"return_train_score": True, "cv": 4}
    local = GridSearchCV(estimator, grid, client=False, **params).fit(X, Y)
    there = GridSearchCV(estimator, grid, **params).fit(X, Y)
    same(local, there)
    assert there.report_.fits_shared == local.report_.fits_shared
    assert there.report_.fits_done == local.report_.fits_done
    assert there.report_.left_to_sklearn == local.report_.left_to_sklearn
    assert there.report_.workers == len(inside.nthreads())
    assert there.best_params_ == local.best_params_
    np.testing.assert_array_equal(there.predict(X), local.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("inside", [2], indirect=True)
def test_routed_weights_multimetric_and_other_containers(inside):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    names = np.array(["no", "yes"])[Y]
    weights = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    params = {"scoring": ["accuracy", "roc_auc"], "refit": "roc_auc", "cv": 3}
    for estimator, grid in (SEARCHES["one by one"], SEARCHES["passes"]):
        local, there = (
            GridSearchCV(estimator, grid, client=c, **params).fit(frame, names, sample_weight=weights)
            for c in (False, inside)
        )
        same(local, there)
    found, expected = (module(TREE, frame, names, cv=3) for module in (cross_validate, sklearn_validate))
    np.testing.assert_array_equal(found["test_score"], expected["test_score"])
