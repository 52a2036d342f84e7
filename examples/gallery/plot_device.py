"""
Data on a device
================

A search works where X lies. Rows on a GPU are summed on the GPU, and only the sums, which are small, come
to the host.

This example runs without a GPU. array-api-strict has a second device whose arrays refuse to become NumPy's,
so nothing is copied unnoticed. With a GPU write ``import cupy as xp`` and leave the device out.
"""

import array_api_strict as xp
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline

from manyfit.estimators import PCA, Ridge, StandardScaler
from manyfit.model_selection import GridSearchCV, SearchHeatmapDisplay

device = xp.Device("device1")
X, y = (xp.asarray(array, device=device) for array in load_diabetes(return_X_y=True))
print(X.device, X.shape)

# %%
# ``manyfit.estimators`` has scikit-learn's estimators for data on a device. The plan says where each of
# them works, and why.

model = make_pipeline(StandardScaler(), PCA(), Ridge())
grid = {"pca__n_components": range(1, 11), "ridge__alpha": np.logspace(-1, 4, 11)}
search = GridSearchCV(model, grid, refit=False)
print(search.plan(X, y))

# %%
# The report counts what was copied: the sums of all folds, together and once. X itself has 35,360 bytes.

search.fit(X, y)
print(search.report_.transfers)

# %%
# The results lie on the host, as numbers of NumPy, and are those of a search there.

SearchHeatmapDisplay.from_search(search, "pca__n_components", "ridge__alpha")
