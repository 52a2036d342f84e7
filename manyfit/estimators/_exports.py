"""The drop-in estimators, a line for each: where its twin is, and what serves it on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sklearn

_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


@dataclass(frozen=True)
class Dispatch:
    """scikit-learn's array API dispatch: since which version it serves an estimator, and with what.

    Attributes
    ----------
    since : tuple of int
        First minor version in which it does. The estimator's tag says less (`MaxAbsScaler`), and more
        (`Ridge`).
    only : dict
        Parameters with the values that it serves, of those that make a difference.
    columns : tuple of int
        First minor version in which several targets are served.
    """

    since: tuple[int, int] = (1, 7)
    only: dict[str, tuple[Any, ...]] | None = None
    columns: tuple[int, int] = (1, 7)

    def refuses(self, estimator: Any, n_targets: int = 1) -> str | None:
        """Why it does not serve an estimator, or None."""
        if n_targets > 1 and self.columns > _VERSION:
            return f"scikit-learn serves several targets on a device since {'.'.join(map(str, self.columns))}"
        if self.since > _VERSION:
            return f"scikit-learn serves it on a device since {'.'.join(map(str, self.since))}"
        for name, values in (self.only or {}).items():
            value = getattr(estimator, name)
            if not any(value is one or (type(value) is type(one) and value == one) for one in values):
                return f"scikit-learn does not serve {name}={value!r} on a device"
        return None


@dataclass(frozen=True)
class Cuml:
    """A class of cuML's that takes over on CuPy's and cuDF's data.

    Attributes
    ----------
    path : str
        Dotted path of the class.
    converts : bool
        Whether parameters go through its ``from_sklearn``. If not, those that are not at their default are
        handed over by name, and refused where cuML has none of that name; `Dispatch` then goes before it
        for arrays, since its fitted attributes are scikit-learn's by name and shape.
    parameters : callable, optional
        Makes cuML's parameters of the estimator, in place of the names.
    """

    path: str
    converts: bool = True
    parameters: Callable[[Any], dict[str, Any]] | None = None


@dataclass(frozen=True)
class Export:
    """One drop-in estimator.

    Attributes
    ----------
    module : str
        Where its twin of the same name is.
    cuml : Cuml, optional
        None where cuML has no such estimator.
    dispatch : Dispatch, optional
        None where scikit-learn's does not work on a device in any version.
    """

    module: str
    cuml: Cuml | None = None
    dispatch: Dispatch | None = None


def _hdbscan(model: Any) -> dict[str, Any]:
    """cuML counts a point among its own neighbours and scikit-learn does not."""
    names = ("metric_params", "store_centers")
    given = {name: getattr(model, name) for name in names if getattr(model, name)}
    if given or model.metric not in ("euclidean", "l2"):
        raise ValueError(f"cuML's HDBSCAN does not serve {given or {'metric': model.metric}}")
    neighbours = model.min_cluster_size if model.min_samples is None else model.min_samples
    same = ("min_cluster_size", "cluster_selection_epsilon", "metric", "alpha", "cluster_selection_method",
            "allow_single_cluster")  # fmt: skip
    return {
        **{name: getattr(model, name) for name in same},
        "min_samples": neighbours - 1,
        "max_cluster_size": model.max_cluster_size or 0,
    }


def _by_name(path: str) -> Cuml:
    return Cuml(path, converts=False)


_LINEAR, _SVM = "sklearn.linear_model", "sklearn.svm"
_NEIGHBORS, _BAYES = "sklearn.neighbors", "sklearn.naive_bayes"
_CLUSTER, _DECOMPOSITION = "sklearn.cluster", "sklearn.decomposition"
_PREPROCESSING, _TEXT = "sklearn.preprocessing", "sklearn.feature_extraction.text"
_SVD = {"solver": ("auto", "svd"), "positive": (False,)}

EXPORTS: dict[str, Export] = {
    "LinearRegression": Export(_LINEAR, Cuml("cuml.linear_model.LinearRegression")),
    "Ridge": Export(
        _LINEAR,
        Cuml("cuml.linear_model.Ridge"),
        Dispatch((1, 7), _SVD, columns=(1, 9)),
    ),
    "RidgeClassifier": Export(_LINEAR, None, Dispatch((1, 9), {**_SVD, "class_weight": (None,)})),
    "Lasso": Export(_LINEAR, Cuml("cuml.linear_model.Lasso")),
    "ElasticNet": Export(_LINEAR, Cuml("cuml.linear_model.ElasticNet")),
    "LogisticRegression": Export(
        _LINEAR, Cuml("cuml.linear_model.LogisticRegression"), Dispatch((1, 9), {"solver": ("lbfgs",)})
    ),
    "PoissonRegressor": Export(_LINEAR, None, Dispatch((1, 9), {"solver": ("lbfgs",)})),
    "GammaRegressor": Export(_LINEAR),
    "TweedieRegressor": Export(_LINEAR),
    "LinearSVC": Export(_SVM, Cuml("cuml.svm.LinearSVC")),
    "LinearSVR": Export(_SVM, Cuml("cuml.svm.LinearSVR")),
    "SVC": Export(_SVM, Cuml("cuml.svm.SVC")),
    "SVR": Export(_SVM, Cuml("cuml.svm.SVR")),
    "KernelRidge": Export("sklearn.kernel_ridge", Cuml("cuml.kernel_ridge.KernelRidge")),
    "KNeighborsClassifier": Export(_NEIGHBORS, Cuml("cuml.neighbors.KNeighborsClassifier")),
    "KNeighborsRegressor": Export(_NEIGHBORS, Cuml("cuml.neighbors.KNeighborsRegressor")),
    "NearestNeighbors": Export(_NEIGHBORS, Cuml("cuml.neighbors.NearestNeighbors")),
    "GaussianNB": Export(_BAYES, _by_name("cuml.naive_bayes.GaussianNB"), Dispatch((1, 8))),
    "MultinomialNB": Export(_BAYES, _by_name("cuml.naive_bayes.MultinomialNB")),
    "BernoulliNB": Export(_BAYES, _by_name("cuml.naive_bayes.BernoulliNB")),
    "ComplementNB": Export(_BAYES, _by_name("cuml.naive_bayes.ComplementNB")),
    "LinearDiscriminantAnalysis": Export(
        "sklearn.discriminant_analysis",
        None,
        Dispatch((1, 7), {"solver": ("svd",), "priors": (None,), "store_covariance": (False,)}),
    ),
    "RandomForestClassifier": Export("sklearn.ensemble", Cuml("cuml.ensemble.RandomForestClassifier")),
    "RandomForestRegressor": Export("sklearn.ensemble", Cuml("cuml.ensemble.RandomForestRegressor")),
    "KMeans": Export(_CLUSTER, Cuml("cuml.cluster.KMeans")),
    "MiniBatchKMeans": Export(_CLUSTER),
    "DBSCAN": Export(_CLUSTER, Cuml("cuml.cluster.DBSCAN")),
    "HDBSCAN": Export(_CLUSTER, Cuml("cuml.cluster.HDBSCAN", False, _hdbscan)),
    "AgglomerativeClustering": Export(_CLUSTER, _by_name("cuml.cluster.AgglomerativeClustering")),
    "PCA": Export(
        _DECOMPOSITION,
        Cuml("cuml.decomposition.PCA"),
        Dispatch(
            (1, 7),
            {
                "svd_solver": ("auto", "full", "covariance_eigh", "randomized"),
                "power_iteration_normalizer": ("auto", "QR"),
            },
        ),
    ),
    "IncrementalPCA": Export(_DECOMPOSITION, _by_name("cuml.decomposition.IncrementalPCA")),
    "TruncatedSVD": Export(_DECOMPOSITION, Cuml("cuml.decomposition.TruncatedSVD")),
    "NMF": Export(_DECOMPOSITION),
    "UMAP": Export("manyfit.estimators._umap", _by_name("cuml.manifold.UMAP")),
    "TSNE": Export("sklearn.manifold", Cuml("cuml.manifold.TSNE")),
    "StandardScaler": Export(_PREPROCESSING, _by_name("cuml.preprocessing.StandardScaler"), Dispatch((1, 8))),
    "MinMaxScaler": Export(_PREPROCESSING, _by_name("cuml.preprocessing.MinMaxScaler"), Dispatch()),
    "MaxAbsScaler": Export(_PREPROCESSING, _by_name("cuml.preprocessing.MaxAbsScaler"), Dispatch()),
    "RobustScaler": Export(_PREPROCESSING, _by_name("cuml.preprocessing.RobustScaler")),
    "Normalizer": Export(_PREPROCESSING, _by_name("cuml.preprocessing.Normalizer"), Dispatch()),
    "QuantileTransformer": Export(_PREPROCESSING, _by_name("cuml.preprocessing.QuantileTransformer")),
    "PolynomialFeatures": Export(
        _PREPROCESSING,
        _by_name("cuml.preprocessing.PolynomialFeatures"),
        Dispatch((1, 8), {"order": ("C",)}),
    ),
    "OneHotEncoder": Export(_PREPROCESSING, Cuml("cuml.preprocessing.OneHotEncoder")),
    "OrdinalEncoder": Export(_PREPROCESSING, _by_name("cuml.preprocessing.OrdinalEncoder")),
    "TargetEncoder": Export(_PREPROCESSING, Cuml("cuml.preprocessing.TargetEncoder")),
    "LabelEncoder": Export(_PREPROCESSING, Cuml("cuml.preprocessing.LabelEncoder"), Dispatch()),
    "SimpleImputer": Export("sklearn.impute", _by_name("cuml.preprocessing.SimpleImputer")),
    "SelectKBest": Export("sklearn.feature_selection"),
    "HashingVectorizer": Export(_TEXT, _by_name("cuml.feature_extraction.text.HashingVectorizer")),
    "CountVectorizer": Export(_TEXT, _by_name("cuml.feature_extraction.text.CountVectorizer")),
    "TfidfTransformer": Export(_TEXT, _by_name("cuml.feature_extraction.text.TfidfTransformer")),
    "TfidfVectorizer": Export(_TEXT, _by_name("cuml.feature_extraction.text.TfidfVectorizer")),
    "GaussianRandomProjection": Export(
        "sklearn.random_projection", _by_name("cuml.random_projection.GaussianRandomProjection")
    ),
    "SparseRandomProjection": Export(
        "sklearn.random_projection", _by_name("cuml.random_projection.SparseRandomProjection")
    ),
}
