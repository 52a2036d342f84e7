"""Halving searches on a cluster."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_regression
from sklearn.tree import DecisionTreeRegressor

from manyfit.model_selection import HalvingGridSearchCV
from tests._same_results import assert_same_results
from tests.cluster._clusters import within

X, Y = make_regression(240, 6, n_informative=2, noise=50.0, random_state=0)
GRID = {"max_depth": [1, 2, 4, 8], "min_samples_leaf": [1, 4]}


def test_rounds_run_on_the_workers(tmp_path):
    def halving(**params):
        tree = DecisionTreeRegressor(random_state=0)
        return HalvingGridSearchCV(tree, GRID, cv=3, factor=2, random_state=0, **params).fit(X, Y)

    here = halving(client=False)
    with within(2) as client:
        there = halving(client=client, checkpoint=tmp_path / "checkpoint")
        assert_same_results(there, here, rtol=0, atol=0)
        assert set(there.report_.split_workers) == {0, 1, 2}
        assert there.report_.fits_done == 3 * sum(there.n_candidates_)
        again = halving(client=client, checkpoint=tmp_path / "checkpoint")
    assert again.report_.fits_restored == again.report_.fits_requested
    np.testing.assert_array_equal(again.predict(X), here.predict(X))
