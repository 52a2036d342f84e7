"""Data, searches, and the comparison of two searches, of the tests of searches on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Client
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

X, Y = make_classification(400, 8, random_state=0)
TREE = DecisionTreeClassifier(random_state=0)
SEARCHES = {
    "moments": (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0, 10.0]}),
    "passes": (LogisticRegression(), {"C": [0.1, 1.0, 10.0]}),
    "family": (
        make_pipeline(FunctionTransformer(np.nan_to_num), Ridge()),
        {"ridge__alpha": [0.1, 1.0, 10.0]},
    ),
    "neighbours": (
        RadiusNeighborsClassifier(outlier_label=0),
        {"radius": [2.0, 3.0, 5.0], "weights": ["uniform", "distance"]},
    ),
    "boosting": (
        HistGradientBoostingClassifier(random_state=0),
        {"max_iter": [2, 4], "learning_rate": [0.1, 0.5]},
    ),
    "voting": (
        VotingClassifier([("tree", TREE), ("bayes", GaussianNB())], voting="soft"),
        {"weights": [[1, 1], [1, 2]], "tree__max_depth": [1, 3]},
    ),
    "stacking": (
        StackingClassifier([("tree", TREE), ("bayes", GaussianNB())], LogisticRegression()),
        {"final_estimator__C": [0.1, 10.0], "passthrough": [False, True]},
    ),
    "steps": (
        make_pipeline(StandardScaler(), PCA(random_state=0), TREE),
        {"pca__n_components": [2, 4], "decisiontreeclassifier__max_depth": [1, 3]},
    ),
    "one by one": (TREE, {"max_depth": [1, 2, 3], "min_samples_leaf": [1, 5]}),
    "several": (make_pipeline(StandardScaler(), Ridge()), {"ridge": [Ridge(), LogisticRegression(), TREE]}),
}


def scores(search: Any) -> dict[str, Any]:
    return {k: v for k, v in search.cv_results_.items() if not k.endswith("_time")}


def same(one: Any, other: Any) -> None:
    assert one.cv_results_.keys() == other.cv_results_.keys()
    for key, expected in scores(one).items():
        np.testing.assert_array_equal(expected, scores(other)[key], err_msg=key)


def stored_keys(client: Client) -> dict[str, set[str]]:
    """Keys of the arrays and packages that each worker keeps of searches."""

    def keys(dask_worker: Any) -> set[str]:
        from manyfit.cluster.worker.fetch import get_store

        return get_store(dask_worker).keys()

    return client.run(keys)
