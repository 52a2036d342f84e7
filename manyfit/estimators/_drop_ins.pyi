"""Written by ``python -m tests.stubs``: names that are made at run time, for type checkers."""

from sklearn.calibration import CalibratedClassifierCV as CalibratedClassifierCV
from sklearn.cluster import DBSCAN as DBSCAN
from sklearn.cluster import HDBSCAN as HDBSCAN
from sklearn.cluster import AgglomerativeClustering as AgglomerativeClustering
from sklearn.cluster import KMeans as KMeans
from sklearn.cluster import MiniBatchKMeans as MiniBatchKMeans
from sklearn.compose import ColumnTransformer as ColumnTransformer
from sklearn.compose import TransformedTargetRegressor as TransformedTargetRegressor
from sklearn.decomposition import NMF as NMF
from sklearn.decomposition import PCA as PCA
from sklearn.decomposition import IncrementalPCA as IncrementalPCA
from sklearn.decomposition import TruncatedSVD as TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier as BaggingClassifier
from sklearn.ensemble import BaggingRegressor as BaggingRegressor
from sklearn.ensemble import RandomForestClassifier as RandomForestClassifier
from sklearn.ensemble import RandomForestRegressor as RandomForestRegressor
from sklearn.ensemble import StackingClassifier as StackingClassifier
from sklearn.ensemble import StackingRegressor as StackingRegressor
from sklearn.ensemble import VotingClassifier as VotingClassifier
from sklearn.ensemble import VotingRegressor as VotingRegressor
from sklearn.feature_extraction.text import CountVectorizer as CountVectorizer
from sklearn.feature_extraction.text import HashingVectorizer as HashingVectorizer
from sklearn.feature_extraction.text import TfidfTransformer as TfidfTransformer
from sklearn.feature_extraction.text import TfidfVectorizer as TfidfVectorizer
from sklearn.feature_selection import RFE as RFE
from sklearn.feature_selection import RFECV as RFECV
from sklearn.feature_selection import SelectFromModel as SelectFromModel
from sklearn.feature_selection import SelectKBest as SelectKBest
from sklearn.impute import SimpleImputer as SimpleImputer
from sklearn.kernel_ridge import KernelRidge as KernelRidge
from sklearn.linear_model import ElasticNet as ElasticNet
from sklearn.linear_model import GammaRegressor as GammaRegressor
from sklearn.linear_model import Lasso as Lasso
from sklearn.linear_model import LinearRegression as LinearRegression
from sklearn.linear_model import LogisticRegression as LogisticRegression
from sklearn.linear_model import PoissonRegressor as PoissonRegressor
from sklearn.linear_model import Ridge as Ridge
from sklearn.linear_model import RidgeClassifier as RidgeClassifier
from sklearn.linear_model import TweedieRegressor as TweedieRegressor
from sklearn.manifold import TSNE as TSNE
from sklearn.multiclass import OneVsOneClassifier as OneVsOneClassifier
from sklearn.multiclass import OneVsRestClassifier as OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier as MultiOutputClassifier
from sklearn.multioutput import MultiOutputRegressor as MultiOutputRegressor
from sklearn.naive_bayes import BernoulliNB as BernoulliNB
from sklearn.naive_bayes import ComplementNB as ComplementNB
from sklearn.naive_bayes import GaussianNB as GaussianNB
from sklearn.naive_bayes import MultinomialNB as MultinomialNB
from sklearn.neighbors import KNeighborsClassifier as KNeighborsClassifier
from sklearn.neighbors import KNeighborsRegressor as KNeighborsRegressor
from sklearn.neighbors import NearestNeighbors as NearestNeighbors
from sklearn.pipeline import FeatureUnion as FeatureUnion
from sklearn.preprocessing import LabelEncoder as LabelEncoder
from sklearn.preprocessing import MaxAbsScaler as MaxAbsScaler
from sklearn.preprocessing import MinMaxScaler as MinMaxScaler
from sklearn.preprocessing import Normalizer as Normalizer
from sklearn.preprocessing import OneHotEncoder as OneHotEncoder
from sklearn.preprocessing import OrdinalEncoder as OrdinalEncoder
from sklearn.preprocessing import PolynomialFeatures as PolynomialFeatures
from sklearn.preprocessing import QuantileTransformer as QuantileTransformer
from sklearn.preprocessing import RobustScaler as RobustScaler
from sklearn.preprocessing import StandardScaler as StandardScaler
from sklearn.preprocessing import TargetEncoder as TargetEncoder
from sklearn.random_projection import GaussianRandomProjection as GaussianRandomProjection
from sklearn.random_projection import SparseRandomProjection as SparseRandomProjection
from sklearn.semi_supervised import SelfTrainingClassifier as SelfTrainingClassifier
from sklearn.svm import SVC as SVC
from sklearn.svm import SVR as SVR
from sklearn.svm import LinearSVC as LinearSVC
from sklearn.svm import LinearSVR as LinearSVR

from manyfit.estimators._umap import UMAP as UMAP

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
    "AgglomerativeClustering",
    "BaggingClassifier",
    "BaggingRegressor",
    "BernoulliNB",
    "CalibratedClassifierCV",
    "ColumnTransformer",
    "ComplementNB",
    "CountVectorizer",
    "ElasticNet",
    "FeatureUnion",
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
    "LinearDiscriminantAnalysis",
    "LinearRegression",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "MaxAbsScaler",
    "MinMaxScaler",
    "MiniBatchKMeans",
    "MultiOutputClassifier",
    "MultiOutputRegressor",
    "MultinomialNB",
    "NearestNeighbors",
    "Normalizer",
    "OneHotEncoder",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OrdinalEncoder",
    "PoissonRegressor",
    "PolynomialFeatures",
    "QuantileTransformer",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "Ridge",
    "RidgeClassifier",
    "RobustScaler",
    "SelectFromModel",
    "SelectKBest",
    "SelfTrainingClassifier",
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
    "VotingRegressor"
]  # fmt: skip
