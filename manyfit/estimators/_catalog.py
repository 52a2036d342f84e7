"""The drop-in estimators, a line for each: where its twin is, and what serves it on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.preprocessing import FunctionTransformer

from manyfit._drop_in_classes import sklearn_class_of
from manyfit.estimators._ridge_checks import check_ridge

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
    holds : bool
        Whether it works by the estimators that it holds, so that these have to work there. They are handed
        the columns as they are.
    check : callable, optional
        ``check(estimator, X, sample_weight)`` looks at arrays on the device before they are fitted to, and
        raises `Unsupported` where the host gives another answer.
    """

    since: tuple[int, int] = (1, 7)
    only: dict[str, tuple[Any, ...]] | None = None
    columns: tuple[int, int] = (1, 7)
    holds: bool = False
    check: Callable[[Any, Any, Any], None] | None = None

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
        return _held_back(estimator) if self.holds else None


def _held_back(estimator: Any) -> str | None:
    """Why what an estimator holds keeps it from working on a device: parts that are scikit-learn's own."""
    parts = estimator.get_params(deep=True)
    for name, part in parts.items():
        if not hasattr(part, "fit") or isinstance(part, type) or hasattr(part, "steps"):
            continue  # the steps of a pipeline are among the parts
        cls = part.__class__  # of a step that is shared, too, which `type` does not tell
        # The function of a FunctionTransformer is the user's.
        ours = sklearn_class_of(cls) is not cls or issubclass(cls, FunctionTransformer)
        if not ours and cls.__module__.startswith("sklearn."):
            return f"its part {name}, a {cls.__name__}, is scikit-learn's and not manyfit.estimators'"
    return None


@dataclass(frozen=True)
class Cuml:
    """A class of cuML's that takes over on CuPy's and cuDF's data.

    Attributes
    ----------
    path : str
        Dotted path of the class.
    converts : bool
        Whether parameters go through its ``from_sklearn``. If not, those that are not at cuML's default are
        handed over by name, and refused where cuML has none of that name; `Dispatch` then goes before it
        for arrays, since its fitted attributes are scikit-learn's by name and shape.
    changes : callable, optional
        Makes of an estimator the parameters of cuML's that are neither of the same name nor what
        ``from_sklearn`` makes of them.
    ignored : tuple of str
        Parameters that cuML lacks, and that change nothing of what is fitted.
    """

    path: str
    converts: bool = True
    changes: Callable[[Any], dict[str, Any]] | None = None
    ignored: tuple[str, ...] = ()


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
    """cuML does not count a point among its own neighbours, as scikit-learn does."""
    if model.metric not in ("euclidean", "l2"):
        raise ValueError(f"cuML's HDBSCAN does not serve metric={model.metric!r}")
    neighbours = model.min_cluster_size if model.min_samples is None else model.min_samples
    return {"min_samples": neighbours - 1, "max_cluster_size": model.max_cluster_size or 0}


def _agglomerative(model: Any) -> dict[str, Any]:
    """Without ``connectivity`` scikit-learn joins what is nearest; cuML looks at 15 neighbours by default."""
    return {"connectivity": "pairwise"} if model.connectivity is None else {}


def _counts(model: Any) -> dict[str, Any]:
    """CuPy has no sparse matrices of integers."""
    return {"dtype": np.float64} if np.dtype(model.dtype).kind in "iu" else {}


def _liblinear(model: Any) -> dict[str, Any]:
    """scikit-learn penalises the intercept as it does the coefficients."""
    return {"penalized_intercept": True}


def _liblinear_regression(model: Any) -> dict[str, Any]:
    """By squares, whatever the loss: `from_sklearn` makes an l1 penalty of a loss that is not squared."""
    return {"penalty": "l2", **_liblinear(model)}


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
        Dispatch((1, 7), _SVD, columns=(1, 9), check=check_ridge),
    ),
    "RidgeClassifier": Export(
        _LINEAR, None, Dispatch((1, 9), {**_SVD, "class_weight": (None,)}, check=check_ridge)
    ),
    "Lasso": Export(_LINEAR, Cuml("cuml.linear_model.Lasso")),
    "ElasticNet": Export(_LINEAR, Cuml("cuml.linear_model.ElasticNet")),
    "LogisticRegression": Export(
        _LINEAR, Cuml("cuml.linear_model.LogisticRegression"), Dispatch((1, 9), {"solver": ("lbfgs",)})
    ),
    "PoissonRegressor": Export(_LINEAR, None, Dispatch((1, 9), {"solver": ("lbfgs",)})),
    "GammaRegressor": Export(_LINEAR),
    "TweedieRegressor": Export(_LINEAR),
    "LinearSVC": Export(_SVM, Cuml("cuml.svm.LinearSVC", changes=_liblinear)),
    "LinearSVR": Export(_SVM, Cuml("cuml.svm.LinearSVR", changes=_liblinear_regression)),
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
    "HDBSCAN": Export(
        _CLUSTER,
        Cuml("cuml.cluster.HDBSCAN", False, _hdbscan, ("algorithm", "leaf_size", "n_jobs", "copy")),
    ),
    "AgglomerativeClustering": Export(
        _CLUSTER,
        Cuml("cuml.cluster.AgglomerativeClustering", False, _agglomerative, ("memory", "compute_full_tree")),
    ),
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
    "IncrementalPCA": Export(_DECOMPOSITION, Cuml("cuml.decomposition.IncrementalPCA")),
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
    "CountVectorizer": Export(_TEXT, Cuml("cuml.feature_extraction.text.CountVectorizer", False, _counts)),
    "TfidfTransformer": Export(_TEXT, _by_name("cuml.feature_extraction.text.TfidfTransformer")),
    "TfidfVectorizer": Export(_TEXT, _by_name("cuml.feature_extraction.text.TfidfVectorizer")),
    "GaussianRandomProjection": Export(
        "sklearn.random_projection", _by_name("cuml.random_projection.GaussianRandomProjection")
    ),
    "SparseRandomProjection": Export(
        "sklearn.random_projection", _by_name("cuml.random_projection.SparseRandomProjection")
    ),
}

_PARTS = Dispatch((1, 9), holds=True)
_ENSEMBLE, _SELECTION = "sklearn.ensemble", "sklearn.feature_selection"
_MULTICLASS, _MULTIOUTPUT = "sklearn.multiclass", "sklearn.multioutput"

# Those that hold others. What cuts and joins more than columns does so with NumPy, on the host.
HOLDERS: dict[str, Export] = {
    "ColumnTransformer": Export("sklearn.compose", dispatch=_PARTS),
    "FeatureUnion": Export("sklearn.pipeline", dispatch=_PARTS),
    "TransformedTargetRegressor": Export("sklearn.compose"),
    "StackingClassifier": Export(_ENSEMBLE),
    "StackingRegressor": Export(_ENSEMBLE),
    "VotingClassifier": Export(_ENSEMBLE),
    "VotingRegressor": Export(_ENSEMBLE),
    "BaggingClassifier": Export(_ENSEMBLE),
    "BaggingRegressor": Export(_ENSEMBLE),
    "CalibratedClassifierCV": Export("sklearn.calibration"),
    "OneVsRestClassifier": Export(_MULTICLASS),
    "OneVsOneClassifier": Export(_MULTICLASS),
    "MultiOutputClassifier": Export(_MULTIOUTPUT),
    "MultiOutputRegressor": Export(_MULTIOUTPUT),
    "SelfTrainingClassifier": Export("sklearn.semi_supervised"),
    "RFE": Export(_SELECTION),
    "RFECV": Export(_SELECTION),
    "SelectFromModel": Export(_SELECTION),
}
ALL = {**EXPORTS, **HOLDERS}
