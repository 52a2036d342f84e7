"""
A search on a Dask cluster
==========================

A support vector machine shares the steps before it and its kernel matrices, but each setting is a fit of
its own. Two workers make twice as many of them at a time.

Worker processes import the script that starts them. In a script the cluster therefore starts under ``if
__name__ == "__main__":``.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from manyfit.cluster import describe, local_cluster
from manyfit.model_selection import GridSearchCV, SearchParallelDisplay

X, y = load_digits(return_X_y=True)
model = make_pipeline(PCA(random_state=0), SVC())
grid = {
    "pca__n_components": [8, 16, 32],
    "svc__C": [0.1, 1.0, 10.0],
    "svc__gamma": np.logspace(-4, -2, 5),
}
search = GridSearchCV(model, grid, cv=3)

# %%
# Inside of the block the search finds the cluster by itself. The workers do all of it except the refit. In
# the picture each setting is a line, and its colour is its score.

if __name__ == "__main__":
    with local_cluster(2) as client:
        print(describe(client))
        search.fit(X, y)
    print(search.report_)
    SearchParallelDisplay.from_search(search)
