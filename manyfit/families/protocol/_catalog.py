"""Which modules of `families` serve which classes, by the names under which users import these.

A module is imported when a search first meets one of its classes, and registers what it has. Tests hold that
these are the classes that it then serves.
"""

from __future__ import annotations

from collections.abc import Mapping


def _by_class(modules: Mapping[str, str]) -> dict[str, str]:
    """The dotted path of the module for each class, from the classes of each module."""
    return {name: f"manyfit.families.{module}" for module, names in modules.items() for name in names.split()}


FAMILIES = _by_class(
    {
        "boosting_libraries._lightgbm": "lightgbm.sklearn.LGBMClassifier lightgbm.sklearn.LGBMRegressor",
        "boosting_libraries._xgboost": "xgboost.sklearn.XGBClassifier xgboost.sklearn.XGBRegressor",
        "generative._discrete_nb": """
            sklearn.naive_bayes.BernoulliNB sklearn.naive_bayes.CategoricalNB
            sklearn.naive_bayes.ComplementNB sklearn.naive_bayes.MultinomialNB""",
        "generative._gaussian_nb": "sklearn.naive_bayes.GaussianNB",
        "generative._linear": "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "generative._nearest_centroid": "sklearn.neighbors.NearestCentroid",
        "generative._quadratic": "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
        "kernels._gaussian_process": "sklearn.gaussian_process.GaussianProcessRegressor",
        "kernels._kernel_ridge": "sklearn.kernel_ridge.KernelRidge",
        "kernels._support_vectors": """
            sklearn.svm.NuSVC sklearn.svm.NuSVR sklearn.svm.SVC sklearn.svm.SVR""",
        "least_squares._bayesian_ridge": "sklearn.linear_model.BayesianRidge",
        "least_squares._coordinate_descent": """
            sklearn.linear_model.ElasticNet sklearn.linear_model.Lasso
            sklearn.linear_model.MultiTaskElasticNet sklearn.linear_model.MultiTaskLasso""",
        "least_squares._least_angle": "sklearn.linear_model.Lars sklearn.linear_model.LassoLars",
        "least_squares._matching_pursuit": "sklearn.linear_model.OrthogonalMatchingPursuit",
        "least_squares._partial_least_squares": "sklearn.cross_decomposition.PLSRegression",
        "least_squares._relevance": "sklearn.linear_model.ARDRegression",
        "least_squares._ridge": "sklearn.linear_model.LinearRegression sklearn.linear_model.Ridge",
        "least_squares._ridge_classifier": "sklearn.linear_model.RidgeClassifier",
        "neighbours._classifier": "sklearn.neighbors.KNeighborsClassifier",
        "neighbours._radius": """
            sklearn.neighbors.RadiusNeighborsClassifier sklearn.neighbors.RadiusNeighborsRegressor""",
        "neighbours._regressor": "sklearn.neighbors.KNeighborsRegressor",
        "nested._boosting": """
            sklearn.ensemble.AdaBoostClassifier sklearn.ensemble.AdaBoostRegressor
            sklearn.ensemble.GradientBoostingClassifier sklearn.ensemble.GradientBoostingRegressor
            sklearn.ensemble.HistGradientBoostingClassifier sklearn.ensemble.HistGradientBoostingRegressor""",
        "nested._composites": """
            sklearn.calibration.CalibratedClassifierCV
            sklearn.ensemble.StackingClassifier sklearn.ensemble.StackingRegressor
            sklearn.ensemble.VotingClassifier sklearn.ensemble.VotingRegressor""",
        "nested._elimination": "sklearn.feature_selection.RFE",
        "nested._forests": """
            sklearn.ensemble.BaggingClassifier sklearn.ensemble.BaggingRegressor
            sklearn.ensemble.ExtraTreesClassifier sklearn.ensemble.ExtraTreesRegressor
            sklearn.ensemble.IsolationForest sklearn.ensemble.RandomForestClassifier
            sklearn.ensemble.RandomForestRegressor""",
        "nested._trees": """
            sklearn.tree.DecisionTreeClassifier sklearn.tree.DecisionTreeRegressor
            sklearn.tree.ExtraTreeClassifier sklearn.tree.ExtraTreeRegressor""",
        "smooth._glm": """
            sklearn.linear_model.GammaRegressor sklearn.linear_model.PoissonRegressor
            sklearn.linear_model.TweedieRegressor""",
        "smooth._linear_svm": "sklearn.svm.LinearSVC sklearn.svm.LinearSVR",
        "smooth._logistic": "sklearn.linear_model.LogisticRegression",
    }
)
# Families of meta-estimators, around that of the estimator which they hold.
WRAPPERS = _by_class(
    {
        "meta_estimators._multi_output": "sklearn.multioutput.MultiOutputRegressor",
        "meta_estimators._one_vs_rest": "sklearn.multiclass.OneVsRestClassifier",
        "meta_estimators._transformed_target": "sklearn.compose.TransformedTargetRegressor",
    }
)
AFFINE_STEPS = _by_class(
    {
        "_affine_steps": """
            sklearn.decomposition.PCA sklearn.feature_selection.SelectKBest
            sklearn.feature_selection.VarianceThreshold sklearn.preprocessing.StandardScaler"""
    }
)
COLUMN_STEPS = _by_class(
    {
        "columns._bins": "sklearn.preprocessing.KBinsDiscretizer",
        "columns._composites": """
            builtins.str sklearn.compose.ColumnTransformer sklearn.pipeline.FeatureUnion
            sklearn.pipeline.Pipeline""",
        "columns._encoders": "sklearn.preprocessing.OneHotEncoder sklearn.preprocessing.OrdinalEncoder",
        "columns._functions": "sklearn.preprocessing.Binarizer sklearn.preprocessing.FunctionTransformer",
        "columns._imputer": "sklearn.impute.SimpleImputer",
        "columns._made": """
            sklearn.preprocessing.Normalizer sklearn.preprocessing.PolynomialFeatures
            sklearn.preprocessing.SplineTransformer""",
        "columns._scalers": """
            sklearn.preprocessing.MaxAbsScaler sklearn.preprocessing.MinMaxScaler
            sklearn.preprocessing.RobustScaler sklearn.preprocessing.StandardScaler""",
    }
)
SPARSE_STEPS = _by_class(
    {
        "_sparse_steps": """
            sklearn.feature_extraction.text.TfidfTransformer sklearn.preprocessing.Binarizer
            sklearn.preprocessing.MaxAbsScaler sklearn.preprocessing.Normalizer
            sklearn.preprocessing.StandardScaler"""
    }
)
