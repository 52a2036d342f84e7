"""scikit-learn's estimators for data that lie anywhere; and families, which answer many settings at once."""

from typing import TYPE_CHECKING, Any

from manyfit.estimators import (  # noqa: F401  (they register themselves)
    _affine_steps,
    _glm,
    _linear,
    _linear_svm,
    _logistic,
    _own_fits,
)
from manyfit.estimators._exported import export
from manyfit.estimators._exports import EXPORTS
from manyfit.estimators._family import (
    AffineStep,
    Answers,
    Cost,
    Family,
    LinearAnswers,
    Predictions,
    Shape,
    affine_step_of,
    family_of,
    register_affine_step,
    register_family,
    unregister_family,
)
from manyfit.estimators._linked import LinkedAnswers

if TYPE_CHECKING:  # a type checker sees scikit-learn's, which they are
    from sklearn.cluster import DBSCAN, HDBSCAN, AgglomerativeClustering, KMeans, MiniBatchKMeans
    from sklearn.decomposition import NMF, PCA, IncrementalPCA, TruncatedSVD
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.feature_extraction.text import (
        CountVectorizer,
        HashingVectorizer,
        TfidfTransformer,
        TfidfVectorizer,
    )
    from sklearn.feature_selection import SelectKBest
    from sklearn.impute import SimpleImputer
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import (
        ElasticNet,
        GammaRegressor,
        Lasso,
        LinearRegression,
        LogisticRegression,
        PoissonRegressor,
        Ridge,
        RidgeClassifier,
        TweedieRegressor,
    )
    from sklearn.manifold import TSNE
    from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
    from sklearn.preprocessing import (
        LabelEncoder,
        MaxAbsScaler,
        MinMaxScaler,
        Normalizer,
        OneHotEncoder,
        OrdinalEncoder,
        PolynomialFeatures,
        QuantileTransformer,
        RobustScaler,
        StandardScaler,
        TargetEncoder,
    )
    from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
    from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

    from manyfit.estimators._umap import UMAP

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "NMF",
    "PCA",
    "SVC",
    "SVR",
    "TSNE",
    "UMAP",
    "AffineStep",
    "AgglomerativeClustering",
    "Answers",
    "BernoulliNB",
    "ComplementNB",
    "Cost",
    "CountVectorizer",
    "ElasticNet",
    "Family",
    "GammaRegressor",
    "GaussianNB",
    "GaussianRandomProjection",
    "HashingVectorizer",
    "IncrementalPCA",
    "KMeans",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KernelRidge",
    "LabelEncoder",
    "Lasso",
    "LinearAnswers",
    "LinearDiscriminantAnalysis",
    "LinearRegression",
    "LinearSVC",
    "LinearSVR",
    "LinkedAnswers",
    "LogisticRegression",
    "MaxAbsScaler",
    "MinMaxScaler",
    "MiniBatchKMeans",
    "MultinomialNB",
    "NearestNeighbors",
    "Normalizer",
    "OneHotEncoder",
    "OrdinalEncoder",
    "PoissonRegressor",
    "PolynomialFeatures",
    "Predictions",
    "QuantileTransformer",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "Ridge",
    "RidgeClassifier",
    "RobustScaler",
    "SelectKBest",
    "Shape",
    "SimpleImputer",
    "SparseRandomProjection",
    "StandardScaler",
    "TargetEncoder",
    "TfidfTransformer",
    "TfidfVectorizer",
    "TruncatedSVD",
    "TweedieRegressor",
    "affine_step_of",
    "family_of",
    "register_affine_step",
    "register_family",
    "unregister_family",
]


def __getattr__(name: str) -> Any:
    """Make a drop-in estimator when it is first asked for, so that only its own module is imported."""
    if name not in EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, export(name))  # of two threads' classes one stays


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
