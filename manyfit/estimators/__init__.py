"""scikit-learn's estimators for data on any device; and families, which answer many settings at once."""

from typing import TYPE_CHECKING, Any

from manyfit.estimators._catalog import CATALOG
from manyfit.estimators._factory import load_drop_in
from manyfit.estimators.backends import _native  # noqa: F401  (registers its fitters)
from manyfit.estimators.chunks.wrappers import Incremental, ParallelPostFit
from manyfit.families import (
    AffineStep,
    Answers,
    Cost,
    Family,
    FoldRows,
    GLMAnswers,
    Iterations,
    LinearAnswers,
    MomentSums,
    Predictions,
    Shape,
    affine_step_of,
    family_of,
    register_affine_step,
    register_family,
    unregister_family,
)

if TYPE_CHECKING:  # for a type checker they are scikit-learn's
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.cluster import DBSCAN, HDBSCAN, AgglomerativeClustering, KMeans, MiniBatchKMeans
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.decomposition import NMF, PCA, IncrementalPCA, TruncatedSVD
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import (
        BaggingClassifier,
        BaggingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
        StackingClassifier,
        StackingRegressor,
        VotingClassifier,
        VotingRegressor,
    )
    from sklearn.feature_extraction.text import (
        CountVectorizer,
        HashingVectorizer,
        TfidfTransformer,
        TfidfVectorizer,
    )
    from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SelectKBest
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
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
    from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
    from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
    from sklearn.pipeline import FeatureUnion
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
    from sklearn.semi_supervised import SelfTrainingClassifier
    from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

    from manyfit.estimators._umap import UMAP

__all__ = [
    "DBSCAN",
    "HDBSCAN",
    "NMF",
    "PCA",
    "RFE",
    "RFECV",
    "SVC",
    "SVR",
    "TSNE",
    "UMAP",
    "AffineStep",
    "AgglomerativeClustering",
    "Answers",
    "BaggingClassifier",
    "BaggingRegressor",
    "BernoulliNB",
    "CalibratedClassifierCV",
    "ColumnTransformer",
    "ComplementNB",
    "Cost",
    "CountVectorizer",
    "ElasticNet",
    "Family",
    "FeatureUnion",
    "FoldRows",
    "GLMAnswers",
    "GammaRegressor",
    "GaussianNB",
    "GaussianRandomProjection",
    "HashingVectorizer",
    "Incremental",
    "IncrementalPCA",
    "Iterations",
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
    "LogisticRegression",
    "MaxAbsScaler",
    "MinMaxScaler",
    "MiniBatchKMeans",
    "MomentSums",
    "MultiOutputClassifier",
    "MultiOutputRegressor",
    "MultinomialNB",
    "NearestNeighbors",
    "Normalizer",
    "OneHotEncoder",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OrdinalEncoder",
    "ParallelPostFit",
    "PoissonRegressor",
    "PolynomialFeatures",
    "Predictions",
    "QuantileTransformer",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "Ridge",
    "RidgeClassifier",
    "RobustScaler",
    "SelectFromModel",
    "SelectKBest",
    "SelfTrainingClassifier",
    "Shape",
    "SimpleImputer",
    "SparseRandomProjection",
    "StackingClassifier",
    "StackingRegressor",
    "StandardScaler",
    "TargetEncoder",
    "TfidfTransformer",
    "TfidfVectorizer",
    "TransformedTargetRegressor",
    "TruncatedSVD",
    "TweedieRegressor",
    "VotingClassifier",
    "VotingRegressor",
    "affine_step_of",
    "family_of",
    "register_affine_step",
    "register_family",
    "unregister_family",
]

if not TYPE_CHECKING:  # or a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Make a drop-in estimator when it is first read, so that only its own module is imported."""
        if name not in CATALOG:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, load_drop_in(name))  # two threads get the same class

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
