"""Halving searches over blocks and Parquet files have the scores of the frame in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import HalvingGridSearchCV as SklearnHalving

from manyfit.model_selection import HalvingGridSearchCV
from tests.behaviour.chunks._frames import given_as
from tests.behaviour.chunks._searches import P, X, Y

FRAME = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
GRID = {"alpha": np.logspace(-1, 5, 6)}


@pytest.mark.parametrize("kind", ["blocks of frames", "blocks of arrays", "parquet", "dask"])
@pytest.mark.parametrize("memory_limit", ["8kB", "8MB"], ids=["in chunks", "loaded"])
def test_blocks_and_files(kind, memory_limit, tmp_path):
    given = given_as(kind, FRAME, 50, tmp_path)
    options = {"random_state": 0, "refit": False, "min_resources": 200, "cv": 3}
    search = HalvingGridSearchCV(Ridge(), GRID, memory_limit=memory_limit, **options)
    plan = search.plan(given, Y)
    expected = SklearnHalving(Ridge(), GRID, **options).fit(X, Y)
    assert plan.rounds and search.fit(given, Y).report_.fits_done == 0
    assert search.n_resources_ == expected.n_resources_
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], rtol=1e-12
    )
