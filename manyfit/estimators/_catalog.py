"""The drop-in estimators, a line for each: scikit-learn's module, and what fits the estimator on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.preprocessing import FunctionTransformer

from manyfit.estimators._ridge_checks import check_ridge
from manyfit.introspection.class_names import sklearn_class_of

_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


@dataclass(frozen=True)
class Dispatch:
    """The part of an estimator that scikit-learn's array API dispatch supports."""

    # First minor version that supports it. The estimator's tag may say less (`MaxAbsScaler`) or more.
    since: tuple[int, int] = (1, 7)
    # Supported values of the parameters that make a difference.
    only: dict[str, tuple[Any, ...]] | None = None
    columns: tuple[int, int] = (1, 7)  # first minor version that supports several targets
    # Whether it is a meta-estimator, which hands columns on to its parts; these have to support the device.
    holds: bool = False
    # ``check(estimator, X, sample_weight)`` reads device arrays before a fit, and raises `Unsupported` if the
    # host would answer differently.
    check: Callable[[Any, Any, Any], None] | None = None

    def refuses(self, estimator: Any, n_targets: int = 1) -> str | None:
        """The reason why an estimator is not supported, or None."""
        if n_targets > 1 and self.columns > _VERSION:
            return (
                f"scikit-learn supports several targets on a device since {'.'.join(map(str, self.columns))}"
            )
        if self.since > _VERSION:
            return f"scikit-learn supports it on a device since {'.'.join(map(str, self.since))}"
        reason = self.refuses_params(vars(estimator))
        return reason or (_unsupported_part(estimator) if self.holds else None)

    def refuses_params(self, params: Mapping[str, Any]) -> str | None:
        """The reason why values of parameters keep an estimator from a device, or None."""
        for name, values in (self.only or {}).items():
            value = params[name]
            plain = value.item() if isinstance(value, np.generic) else value
            if not any(plain is one or (type(plain) is type(one) and plain == one) for one in values):
                return f"scikit-learn does not support {name}={value!r} on a device"
        return None


def _unsupported_part(estimator: Any) -> str | None:
    """The reason why a meta-estimator cannot work on a device: a part is scikit-learn's own class."""
    parts = estimator.get_params(deep=True)
    for name, part in parts.items():
        if not hasattr(part, "fit") or isinstance(part, type) or hasattr(part, "steps"):
            continue  # the steps of a pipeline are parts themselves
        cls = part.__class__  # `type` would give the wrapper of a shared step
        # The function of a FunctionTransformer is the user's.
        ours = sklearn_class_of(cls) is not cls or issubclass(cls, FunctionTransformer)
        if not ours and cls.__module__.startswith("sklearn."):
            return f"its part {name}, a {cls.__name__}, is scikit-learn's and not manyfit.estimators'"
    return None


@dataclass(frozen=True)
class Cuml:
    """A class of cuML that fits an estimator to CuPy's and cuDF's data."""

    path: str  # dotted path of the class
    # Whether ``from_sklearn`` converts parameters. If not, parameters that differ from cuML's defaults are
    # passed by name and refused if cuML has none of that name; for arrays `Dispatch` then comes first,
    # because its fitted attributes have scikit-learn's names and shapes.
    converts: bool = True
    # ``changes(estimator)`` returns cuML's parameters that differ in name or value.
    changes: Callable[[Any], dict[str, Any]] | None = None
    ignored: tuple[str, ...] = ()  # parameters that cuML lacks and that do not change the fit


@dataclass(frozen=True)
class DropIn:
    """One drop-in estimator: the module of scikit-learn's class, and what cuML and dispatch support of it."""

    module: str
    cuml: Cuml | None = None
    dispatch: Dispatch | None = None


def _hdbscan(model: Any) -> dict[str, Any]:
    """scikit-learn counts a point among its own neighbours; cuML does not."""
    if model.metric not in ("euclidean", "l2"):
        raise ValueError(f"cuML's HDBSCAN does not support metric={model.metric!r}")
    neighbours = model.min_cluster_size if model.min_samples is None else model.min_samples
    return {"min_samples": neighbours - 1, "max_cluster_size": model.max_cluster_size or 0}


def _agglomerative(model: Any) -> dict[str, Any]:
    """Without ``connectivity`` scikit-learn compares all pairs; cuML's default is 15 neighbours."""
    return {"connectivity": "pairwise"} if model.connectivity is None else {}


def _counts(model: Any) -> dict[str, Any]:
    """CuPy has no sparse matrices of integers."""
    return {"dtype": np.float64} if np.dtype(model.dtype).kind in "iu" else {}


def _liblinear(model: Any) -> dict[str, Any]:
    """scikit-learn penalises the intercept as it does the coefficients."""
    return {"penalized_intercept": True}


def _liblinear_regression(model: Any) -> dict[str, Any]:
    """The penalty is l2 for any loss; ``from_sklearn`` makes it l1 for a loss that is not squared."""
    return {"penalty": "l2", **_liblinear(model)}


def _by_name(path: str) -> Cuml:
    return Cuml(path, converts=False)


_LINEAR, _SVM = "sklearn.linear_model", "sklearn.svm"
_NEIGHBORS, _BAYES = "sklearn.neighbors", "sklearn.naive_bayes"
_CLUSTER, _DECOMPOSITION = "sklearn.cluster", "sklearn.decomposition"
_PREPROCESSING, _TEXT = "sklearn.preprocessing", "sklearn.feature_extraction.text"
_SVD = {"solver": ("auto", "svd"), "positive": (False,)}

ESTIMATORS: dict[str, DropIn] = {
    "LinearRegression": DropIn(_LINEAR, Cuml("cuml.linear_model.LinearRegression")),
    "Ridge": DropIn(
        _LINEAR,
        Cuml("cuml.linear_model.Ridge"),
        Dispatch((1, 7), _SVD, columns=(1, 9), check=check_ridge),
    ),
    "RidgeClassifier": DropIn(
        _LINEAR, None, Dispatch((1, 9), {**_SVD, "class_weight": (None,)}, check=check_ridge)
    ),
    "Lasso": DropIn(_LINEAR, Cuml("cuml.linear_model.Lasso")),
    "ElasticNet": DropIn(_LINEAR, Cuml("cuml.linear_model.ElasticNet")),
    "LogisticRegression": DropIn(
        _LINEAR, Cuml("cuml.linear_model.LogisticRegression"), Dispatch((1, 9), {"solver": ("lbfgs",)})
    ),
    "PoissonRegressor": DropIn(_LINEAR, None, Dispatch((1, 9), {"solver": ("lbfgs",)})),
    "GammaRegressor": DropIn(_LINEAR),
    "TweedieRegressor": DropIn(_LINEAR),
    "LinearSVC": DropIn(_SVM, Cuml("cuml.svm.LinearSVC", changes=_liblinear)),
    "LinearSVR": DropIn(_SVM, Cuml("cuml.svm.LinearSVR", changes=_liblinear_regression)),
    "SVC": DropIn(_SVM, Cuml("cuml.svm.SVC")),
    "SVR": DropIn(_SVM, Cuml("cuml.svm.SVR")),
    "KernelRidge": DropIn("sklearn.kernel_ridge", Cuml("cuml.kernel_ridge.KernelRidge")),
    "KNeighborsClassifier": DropIn(_NEIGHBORS, Cuml("cuml.neighbors.KNeighborsClassifier")),
    "KNeighborsRegressor": DropIn(_NEIGHBORS, Cuml("cuml.neighbors.KNeighborsRegressor")),
    "NearestNeighbors": DropIn(_NEIGHBORS, Cuml("cuml.neighbors.NearestNeighbors")),
    "GaussianNB": DropIn(_BAYES, _by_name("cuml.naive_bayes.GaussianNB"), Dispatch((1, 8))),
    "MultinomialNB": DropIn(_BAYES, _by_name("cuml.naive_bayes.MultinomialNB")),
    "BernoulliNB": DropIn(_BAYES, _by_name("cuml.naive_bayes.BernoulliNB")),
    "ComplementNB": DropIn(_BAYES, _by_name("cuml.naive_bayes.ComplementNB")),
    "LinearDiscriminantAnalysis": DropIn(
        "sklearn.discriminant_analysis",
        None,
        Dispatch((1, 7), {"solver": ("svd",), "priors": (None,), "store_covariance": (False,)}),
    ),
    "RandomForestClassifier": DropIn("sklearn.ensemble", Cuml("cuml.ensemble.RandomForestClassifier")),
    "RandomForestRegressor": DropIn("sklearn.ensemble", Cuml("cuml.ensemble.RandomForestRegressor")),
    "KMeans": DropIn(_CLUSTER, Cuml("cuml.cluster.KMeans")),
    "MiniBatchKMeans": DropIn(_CLUSTER),
    "DBSCAN": DropIn(_CLUSTER, Cuml("cuml.cluster.DBSCAN")),
    "HDBSCAN": DropIn(
        _CLUSTER,
        Cuml("cuml.cluster.HDBSCAN", False, _hdbscan, ("algorithm", "leaf_size", "n_jobs", "copy")),
    ),
    "AgglomerativeClustering": DropIn(
        _CLUSTER,
        Cuml("cuml.cluster.AgglomerativeClustering", False, _agglomerative, ("memory", "compute_full_tree")),
    ),
    "PCA": DropIn(
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
    "IncrementalPCA": DropIn(_DECOMPOSITION, Cuml("cuml.decomposition.IncrementalPCA")),
    "TruncatedSVD": DropIn(_DECOMPOSITION, Cuml("cuml.decomposition.TruncatedSVD")),
    "NMF": DropIn(_DECOMPOSITION),
    "UMAP": DropIn("manyfit.estimators._umap", _by_name("cuml.manifold.UMAP")),
    "TSNE": DropIn("sklearn.manifold", Cuml("cuml.manifold.TSNE")),
    "StandardScaler": DropIn(_PREPROCESSING, _by_name("cuml.preprocessing.StandardScaler"), Dispatch((1, 8))),
    "MinMaxScaler": DropIn(_PREPROCESSING, _by_name("cuml.preprocessing.MinMaxScaler"), Dispatch()),
    "MaxAbsScaler": DropIn(_PREPROCESSING, _by_name("cuml.preprocessing.MaxAbsScaler"), Dispatch()),
    "RobustScaler": DropIn(_PREPROCESSING, _by_name("cuml.preprocessing.RobustScaler")),
    "Normalizer": DropIn(_PREPROCESSING, _by_name("cuml.preprocessing.Normalizer"), Dispatch()),
    "QuantileTransformer": DropIn(_PREPROCESSING, _by_name("cuml.preprocessing.QuantileTransformer")),
    "PolynomialFeatures": DropIn(
        _PREPROCESSING,
        _by_name("cuml.preprocessing.PolynomialFeatures"),
        Dispatch((1, 8), {"order": ("C",)}),
    ),
    "OneHotEncoder": DropIn(_PREPROCESSING, Cuml("cuml.preprocessing.OneHotEncoder")),
    "OrdinalEncoder": DropIn(_PREPROCESSING, _by_name("cuml.preprocessing.OrdinalEncoder")),
    "TargetEncoder": DropIn(_PREPROCESSING, Cuml("cuml.preprocessing.TargetEncoder")),
    "LabelEncoder": DropIn(_PREPROCESSING, Cuml("cuml.preprocessing.LabelEncoder"), Dispatch()),
    "SimpleImputer": DropIn("sklearn.impute", _by_name("cuml.preprocessing.SimpleImputer")),
    "SelectKBest": DropIn("sklearn.feature_selection"),
    "HashingVectorizer": DropIn(_TEXT, _by_name("cuml.feature_extraction.text.HashingVectorizer")),
    "CountVectorizer": DropIn(_TEXT, Cuml("cuml.feature_extraction.text.CountVectorizer", False, _counts)),
    "TfidfTransformer": DropIn(_TEXT, _by_name("cuml.feature_extraction.text.TfidfTransformer")),
    "TfidfVectorizer": DropIn(_TEXT, _by_name("cuml.feature_extraction.text.TfidfVectorizer")),
    "GaussianRandomProjection": DropIn(
        "sklearn.random_projection", _by_name("cuml.random_projection.GaussianRandomProjection")
    ),
    "SparseRandomProjection": DropIn(
        "sklearn.random_projection", _by_name("cuml.random_projection.SparseRandomProjection")
    ),
}

_PARTS = Dispatch((1, 9), holds=True)
_ENSEMBLE, _SELECTION = "sklearn.ensemble", "sklearn.feature_selection"
_MULTICLASS, _MULTIOUTPUT = "sklearn.multiclass", "sklearn.multioutput"

# Those that select or join rows, and not only columns, do so with NumPy on the host.
META_ESTIMATORS: dict[str, DropIn] = {
    "ColumnTransformer": DropIn("sklearn.compose", dispatch=_PARTS),
    "FeatureUnion": DropIn("sklearn.pipeline", dispatch=_PARTS),
    "TransformedTargetRegressor": DropIn("sklearn.compose"),
    "StackingClassifier": DropIn(_ENSEMBLE),
    "StackingRegressor": DropIn(_ENSEMBLE),
    "VotingClassifier": DropIn(_ENSEMBLE),
    "VotingRegressor": DropIn(_ENSEMBLE),
    "BaggingClassifier": DropIn(_ENSEMBLE),
    "BaggingRegressor": DropIn(_ENSEMBLE),
    "CalibratedClassifierCV": DropIn("sklearn.calibration"),
    "OneVsRestClassifier": DropIn(_MULTICLASS),
    "OneVsOneClassifier": DropIn(_MULTICLASS),
    "MultiOutputClassifier": DropIn(_MULTIOUTPUT),
    "MultiOutputRegressor": DropIn(_MULTIOUTPUT),
    "SelfTrainingClassifier": DropIn("sklearn.semi_supervised"),
    "RFE": DropIn(_SELECTION),
    "RFECV": DropIn(_SELECTION),
    "SelectFromModel": DropIn(_SELECTION),
}
CATALOG = {**ESTIMATORS, **META_ESTIMATORS}
