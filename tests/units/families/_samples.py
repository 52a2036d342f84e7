"""Small data and parameters on which every drop-in estimator can be fitted, alike anywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold

from manyfit import estimators
from manyfit.estimators._catalog import ESTIMATORS

TEXTS = ["a dog runs", "the dog sleeps", "a cat runs fast", "cats sleep", "the cat", "dogs run"]
X, LABELS = make_classification(60, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
X = np.abs(X)
WORDS = np.array(["ant", "bee", "cat"])[LABELS]
NUMBERS = X @ np.arange(1.0, 6.0) + 0.5 + LABELS
NEW = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
PARAMS: dict[str, dict[str, Any]] = {
    "GaussianRandomProjection": {"n_components": 3},
    "HDBSCAN": {"copy": True},
    "IncrementalPCA": {"n_components": 3},
    "LogisticRegression": {"tol": 1e-8},
    "NMF": {"n_components": 2, "max_iter": 1000, "tol": 1e-3},
    "PoissonRegressor": {"tol": 1e-8},
    "QuantileTransformer": {"n_quantiles": 10},
    "RandomForestClassifier": {"n_estimators": 3},
    "RandomForestRegressor": {"n_estimators": 3},
    "Ridge": {"solver": "svd"},
    "RidgeClassifier": {"solver": "svd"},
    "SelectKBest": {"k": 2},
    "SparseRandomProjection": {"n_components": 3},
    "TargetEncoder": {"cv": KFold(3)} if NEW else {"shuffle": False},
    "TSNE": {"perplexity": 5, "max_iter": 250},
}
CATEGORIES = {"OneHotEncoder", "OrdinalEncoder", "TargetEncoder"}
OF_TEXTS = {"HashingVectorizer", "CountVectorizer", "TfidfVectorizer"}
# All that take arrays: UMAP needs umap-learn.
NAMES = [name for name in ESTIMATORS if name not in OF_TEXTS | {"UMAP"}]


class Sample(NamedTuple):
    """X and y, as NumPy has them; y is None where the estimator has none."""

    X: Any
    y: Any


def made(name: str, *, twin: bool = False) -> Any:
    """A drop-in estimator, or its twin, with parameters that make its results the same anywhere."""
    cls = getattr(estimators, name)
    cls = cls.__mro__[1] if twin else cls
    seeded = {"random_state": 0} if "random_state" in cls().get_params() and name != "TargetEncoder" else {}
    return cls(**seeded, **PARAMS.get(name, {}))


def sample(name: str) -> Sample:
    """What a drop-in estimator is fitted to."""
    if name in OF_TEXTS:
        return Sample(TEXTS, None)
    if name == "LabelEncoder":
        return Sample(LABELS, None)
    rows = np.floor(2 * X) if name in CATEGORIES else X
    estimator = made(name)
    if is_classifier(estimator) or name == "SelectKBest":
        return Sample(rows, LABELS)
    return Sample(rows, NUMBERS if is_regressor(estimator) or name == "TargetEncoder" else None)


METHODS = (
    "predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function",
    "transform", "score_samples", "kneighbors", "kneighbors_graph", "apply", "decision_path",
)  # fmt: skip
# Both ask X again; the results of the one are the input of the other.
IN_TURN = ("transform", "inverse_transform")


def results(estimator: Any, X: Any, y: Any, methods: tuple[str, ...] = METHODS) -> dict[str, Any]:
    """What a fitted estimator answers, by method."""
    found = {name: getattr(estimator, name)(X) for name in methods if hasattr(estimator, name)}
    if hasattr(estimator, "score"):
        found["score"] = estimator.score(X) if y is None else estimator.score(X, y)
    name = type(estimator).__name__
    if all(hasattr(estimator, method) for method in IN_TURN) and name != "SimpleImputer":
        found["inverse_transform"] = estimator.inverse_transform(found["transform"])
    return found
