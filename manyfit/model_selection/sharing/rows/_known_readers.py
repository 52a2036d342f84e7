"""Which estimators, functions and scorers are known not to write into the data that they are given.

Only these are lent the rows, targets and weights that other fits read, too. The list is explicit, by exact
type: a subclass may override anything, and nobody has looked at a class of a later scikit-learn. Tests fit
every class of the list with each of its options, on data of many layouts, and compare these before and after.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np
import scipy.sparse
import scipy.special
import sklearn.feature_selection
import sklearn.metrics
import sklearn.preprocessing

import manyfit.metrics
from manyfit._compat import (
    PassthroughScorer,
    negative_likelihood_ratio,
    positive_likelihood_ratio,
    scorer_parts,
    scorers_by_name,
)
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.introspection.flags import is_flag
from manyfit.introspection.structural_key import Wrapped

__all__ = ["READERS", "strangers", "strangers_among_scorers"]

# Names by the public module that has them (read and tested in scikit-learn 1.7 to 1.9).
READERS: dict[str, str] = {
    "sklearn.calibration": "CalibratedClassifierCV",
    "sklearn.cluster": """
        AffinityPropagation AgglomerativeClustering Birch BisectingKMeans DBSCAN
        FeatureAgglomeration HDBSCAN KMeans MeanShift MiniBatchKMeans OPTICS SpectralBiclustering
        SpectralClustering SpectralCoclustering""",
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor make_column_selector",
    "sklearn.covariance": """
        EllipticEnvelope EmpiricalCovariance GraphicalLasso GraphicalLassoCV LedoitWolf MinCovDet
        OAS ShrunkCovariance""",
    "sklearn.cross_decomposition": "CCA PLSCanonical PLSRegression PLSSVD",
    "sklearn.decomposition": """
        DictionaryLearning FactorAnalysis FastICA IncrementalPCA KernelPCA LatentDirichletAllocation
        MiniBatchDictionaryLearning MiniBatchNMF MiniBatchSparsePCA NMF PCA SparseCoder SparsePCA
        TruncatedSVD""",
    "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "sklearn.dummy": "DummyClassifier DummyRegressor",
    "sklearn.ensemble": """
        AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor ExtraTreesClassifier
        ExtraTreesRegressor GradientBoostingClassifier GradientBoostingRegressor
        HistGradientBoostingClassifier HistGradientBoostingRegressor IsolationForest
        RandomForestClassifier RandomForestRegressor RandomTreesEmbedding StackingClassifier
        StackingRegressor VotingClassifier VotingRegressor""",
    "sklearn.feature_extraction": "DictVectorizer FeatureHasher",
    "sklearn.feature_extraction.image": "PatchExtractor",
    "sklearn.feature_extraction.text": """
        CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer""",
    "sklearn.feature_selection": """
        GenericUnivariateSelect RFE RFECV SelectFdr SelectFpr SelectFromModel SelectFwe SelectKBest
        SelectPercentile SequentialFeatureSelector VarianceThreshold""",
    "sklearn.frozen": "FrozenEstimator",
    "sklearn.gaussian_process": "GaussianProcessClassifier GaussianProcessRegressor",
    "sklearn.gaussian_process.kernels": """
        CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel
        Product RBF RationalQuadratic Sum WhiteKernel""",
    "sklearn.impute": "IterativeImputer KNNImputer MissingIndicator SimpleImputer",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.kernel_approximation": """
        AdditiveChi2Sampler Nystroem PolynomialCountSketch RBFSampler SkewedChi2Sampler""",
    "sklearn.kernel_ridge": "KernelRidge",
    "sklearn.linear_model": """
        ARDRegression BayesianRidge ElasticNet ElasticNetCV GammaRegressor HuberRegressor Lars
        LarsCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC LinearRegression LogisticRegression
        LogisticRegressionCV MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso
        MultiTaskLassoCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV
        PassiveAggressiveClassifier PassiveAggressiveRegressor Perceptron PoissonRegressor
        QuantileRegressor RANSACRegressor Ridge RidgeCV RidgeClassifier RidgeClassifierCV
        SGDClassifier SGDOneClassSVM SGDRegressor TheilSenRegressor TweedieRegressor""",
    "sklearn.manifold": "ClassicalMDS Isomap LocallyLinearEmbedding MDS SpectralEmbedding TSNE",
    "sklearn.mixture": "BayesianGaussianMixture GaussianMixture",
    "sklearn.model_selection": """
        FixedThresholdClassifier GridSearchCV GroupKFold GroupShuffleSplit HalvingGridSearchCV
        HalvingRandomSearchCV KFold LeaveOneGroupOut LeaveOneOut LeavePGroupsOut LeavePOut
        PredefinedSplit RandomizedSearchCV RepeatedKFold RepeatedStratifiedKFold ShuffleSplit
        StratifiedGroupKFold StratifiedKFold StratifiedShuffleSplit TimeSeriesSplit
        TunedThresholdClassifierCV""",
    "sklearn.multiclass": "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier",
    "sklearn.multioutput": "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain",
    "sklearn.naive_bayes": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
    "sklearn.neighbors": """
        KNeighborsClassifier KNeighborsRegressor KNeighborsTransformer KernelDensity
        LocalOutlierFactor NearestCentroid NearestNeighbors NeighborhoodComponentsAnalysis
        RadiusNeighborsClassifier RadiusNeighborsRegressor RadiusNeighborsTransformer""",
    "sklearn.neural_network": "BernoulliRBM MLPClassifier MLPRegressor",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": """
        Binarizer FunctionTransformer KBinsDiscretizer KernelCenterer LabelBinarizer LabelEncoder
        MaxAbsScaler MinMaxScaler MultiLabelBinarizer Normalizer OneHotEncoder OrdinalEncoder
        PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler SplineTransformer
        StandardScaler TargetEncoder""",
    "sklearn.random_projection": "GaussianRandomProjection SparseRandomProjection",
    "sklearn.semi_supervised": "LabelPropagation LabelSpreading SelfTrainingClassifier",
    "sklearn.svm": "LinearSVC LinearSVR NuSVC NuSVR OneClassSVM SVC SVR",
    "sklearn.tree": """
        DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor""",
}
_NAMES = {module: frozenset(names.split()) for module, names in READERS.items()}

# All functions that these modules export return what they compute, and leave their arguments as they are.
FUNCTIONS = (
    sklearn.feature_selection,
    sklearn.metrics,
    sklearn.metrics.cluster,
    sklearn.metrics.pairwise,
    sklearn.preprocessing,
    manyfit.metrics,
)

# scikit-learn's coordinate descent works in X itself, copy_X or not, where it centers nothing.
_UNCENTERED = ("ElasticNetCV", "LassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso")
_WRITES: dict[str, Callable[[Mapping[str, Any]], bool]] = dict.fromkeys(
    (*_UNCENTERED, "MultiTaskLassoCV"), lambda params: not params["fit_intercept"]
)
# The user's functions here see one document at a time, never the rows.
_OF_DOCUMENTS = frozenset(("analyzer", "preprocessor", "strip_accents", "tokenizer"))
_VECTORIZERS = frozenset(("CountVectorizer", "HashingVectorizer", "TfidfVectorizer"))

# Told so, whoever has such a parameter writes into its input.
_TOLD = {"copy": False, "copy_X": False, "copy_x": False, "overwrite_a": True, "overwrite_b": True}

_VALUES = (str, bytes, numbers.Number, np.generic, np.dtype, np.ndarray, slice, range, types.EllipsisType)
_GENERATORS = (np.random.RandomState, np.random.Generator, np.random.BitGenerator, random.Random)
_DEEPEST = 50


def strangers(thing: Any, depth: int = 0) -> Iterator[Any]:
    """What is not known to leave its input as it is: of an estimator, or of a value of a parameter.

    Parameters
    ----------
    thing : object
        An unfitted estimator, or anything nested in one.
    depth : int, default=0
        How deep in the structure `thing` lies.

    Yields
    ------
    type, function or str
        Types of estimators and other objects, functions, and names of parameters. Nothing, if `thing` can be
        lent rows that others read, too.
    """
    if thing is None or isinstance(thing, (*_VALUES, *_GENERATORS)) or scipy.sparse.issparse(thing):
        return
    if depth > _DEEPEST:
        yield type(thing)
    elif isinstance(thing, Wrapped):
        yield from strangers(thing._shared_inner, depth)
    elif type(thing) in (list, tuple, set, frozenset):
        for item in thing:
            yield from strangers(item, depth + 1)
    elif type(thing) is dict:
        yield from _of_params(thing, depth)
    elif type(thing) is functools.partial:
        yield from strangers([thing.func, thing.args, thing.keywords], depth)
    elif isinstance(thing, (type, np.ufunc, types.FunctionType, types.BuiltinFunctionType)):
        if not _is_known_function(thing):
            yield thing
    else:
        yield from _of_object(thing, depth)


def _of_params(params: Mapping[Any, Any], depth: int) -> Iterator[Any]:
    for name, value in params.items():
        if (name in _TOLD and is_flag(value, _TOLD[name])) or (name == "out" and value is not None):
            yield name
        else:
            yield from strangers(value, depth + 1)


def _of_object(thing: Any, depth: int) -> Iterator[Any]:
    kind = sklearn_class_of(type(thing))
    if not is_reader(kind):
        yield type(thing)
        return
    params = _params(thing)
    rule = _WRITES.get(kind.__name__)
    if rule is not None and rule(params):
        yield type(thing)
    if kind.__name__ in _VECTORIZERS:
        params = {name: value for name, value in params.items() if name not in _OF_DOCUMENTS}
    yield from _of_params(params, depth)


def _params(thing: Any) -> Mapping[str, Any]:
    """Constructor parameters; all that an object holds where it does not list them (a splitter)."""
    if not hasattr(thing, "get_params"):
        return vars(thing)
    return {name: getattr(thing, name, None) for name in _parameters(cast(Any, type(thing)))}


@functools.cache
def _parameters(cls: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(cls).parameters)  # `get_params` takes longer, and each fit asks


def is_reader(cls: type) -> bool:
    """Whether a class is one of the list, itself and not by its name."""
    module = _public_module(cls)
    return cls.__name__ in _NAMES.get(module, ()) and getattr(sys.modules[module], cls.__name__, None) is cls


def _public_module(cls: type) -> str:
    """The module that a class of scikit-learn is imported from: its own up to the first private part."""
    return cls.__module__.partition("._")[0]


def _is_known_function(thing: Any) -> bool:
    if isinstance(thing, type):  # as a dtype
        return thing.__module__ in ("builtins", "numpy")
    if isinstance(thing, np.ufunc):  # np.frompyfunc makes others
        return any(getattr(module, thing.__name__, None) is thing for module in (np, scipy.special))
    return any(thing is one for one in _functions().get(thing.__name__, ()))


@functools.cache
def _functions() -> dict[str, list[Any]]:
    """The functions of `FUNCTIONS` by their own names."""
    found: dict[str, list[Any]] = {}
    for metric in (negative_likelihood_ratio, positive_likelihood_ratio):  # of scorers by name only
        found[metric.__name__] = [metric]
    for module in FUNCTIONS:
        for name, function in vars(module).items():
            own = name in module.__all__ if hasattr(module, "__all__") else _is_of(module, name, function)
            if own and isinstance(function, types.FunctionType):
                found.setdefault(function.__name__, []).append(function)
    return found


def _is_of(module: types.ModuleType, name: str, function: Any) -> bool:
    """Whether something public is defined in a module, and not imported by it."""
    return not name.startswith("_") and getattr(function, "__module__", None) == module.__name__


def strangers_among_scorers(scorer: Any) -> Iterator[Any]:
    """What is not known to leave rows and targets as they are, among a scorer or a bundle of several.

    Parameters
    ----------
    scorer : callable
        As scikit-learn's searches have it. The `score` method of an estimator is the estimator's matter.

    Yields
    ------
    type, function or str
        Types of scorers, and metrics.
    """
    for one in scorers_by_name(scorer).values():
        if isinstance(one, PassthroughScorer):
            continue
        made = scorer_parts(one)
        if made is None:
            yield type(one) if not isinstance(one, types.FunctionType) else one
        else:
            metric, _, kwargs, _ = made
            if type(metric).__module__.startswith("manyfit."):  # one of ours around a metric
                metric = vars(metric)["metric"]
            yield from strangers([metric, dict(kwargs)])


def any_of(found: Iterable[Any]) -> bool:
    """Whether there is at least one."""
    return next(iter(found), None) is not None
