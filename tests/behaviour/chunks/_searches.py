"""Data of the tests of searches in chunks, and their comparison with a search in memory."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as SklearnScaler

rng = np.random.default_rng(0)
N, P = 1499, 6
X = rng.normal(size=(N, P)) * [1.0, 10.0, 0.1, 1.0, 1.0, 5.0] + 3.0
Y = X @ rng.normal(size=P) + rng.normal(scale=3.0, size=N)
LABELS = np.where(np.median(Y) < Y, "high", "low")
WEIGHTS = rng.uniform(0.5, 1.5, size=N)
GROUPS = rng.integers(0, 9, size=N)
KINDS = ["h5py", "zarr", "dask", "memmap"]
RIDGE = make_pipeline(SklearnScaler(), SklearnRidge())
GRID = {"ridge__alpha": [0.1, 10.0, 1e3]}


def assert_same(search, expected, tol):
    assert search.report_.fits_done == 0
    for name, values in expected.cv_results_.items():
        if name.endswith("_score") and not name.startswith(("rank", "std")):
            np.testing.assert_allclose(search.cv_results_[name], values, rtol=tol, err_msg=name)
