"""Estimators that no family shares: only their transformers are, and no number changes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_selection import (
    RFE,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    SequentialFeatureSelector,
    VarianceThreshold,
    f_classif,
    mutual_info_classif,
)
from sklearn.impute import KNNImputer
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tests.differential._recipe import Recipe
from tests.differential._register import Grid, register


@register("dummy classifier", classes=True)
def dummy_classifier(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    strategies = ["prior", "uniform", "stratified", *draw(st.sampled_from([[], ["constant"]]))]
    return DummyClassifier(random_state=0), {"strategy": strategies}


@register("dummy regressor")
def dummy_regressor(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    quantiles = {"strategy": ["quantile"], "quantile": [0.2, 2.0]}
    return DummyRegressor(), [{"strategy": ["mean", "median"]}, quantiles]


@register("scaler, tree")
def scaler_tree(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid = {
        "decisiontreeregressor__max_depth": draw(st.sampled_from([[1, 3], [2, 0]])),
        "standardscaler": ["passthrough", StandardScaler()],
    }
    return make_pipeline(StandardScaler(), DecisionTreeRegressor(random_state=draw(st.integers(0, 9)))), grid


@register("tree classifier", classes=True)
def tree_classifier(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid = {"max_depth": [1, 3], "class_weight": [None, "balanced"]}
    return DecisionTreeClassifier(random_state=1, max_features=1), grid


@register("scaler, naive bayes", classes=True)
def scaler_naive_bayes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    smoothings = draw(st.sampled_from([[1e-9], [1e-3, 1.0], [1e-12, 1e-6, 0.1]]))
    return make_pipeline(StandardScaler(), GaussianNB()), {"gaussiannb__var_smoothing": smoothings}


@register("scaler, pca, neighbours", classes=True)
def scaler_pca_neighbours(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid = {"radiusneighborsclassifier__radius": [1.0, 3.0], "pca__n_components": [1, 2]}
    # No family serves this metric.
    last = RadiusNeighborsClassifier(outlier_label="most_frequent", metric="nan_euclidean")
    return make_pipeline(StandardScaler(), PCA(), last), grid


@register("column transformer, neighbours")
def column_transformer(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    transformers = [("a", StandardScaler(), [0]), ("b", MinMaxScaler(), [-1])]
    columns = ColumnTransformer(transformers, remainder="passthrough")
    grid = {
        "kneighborsregressor__n_neighbors": [1, 3],
        "columntransformer__a__with_std": [True, False],
        "columntransformer__remainder": [draw(st.sampled_from(["passthrough", "drop"]))],
    }
    return make_pipeline(columns, KNeighborsRegressor()), grid


@register("feature union, ridge")
def feature_union(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    union = FeatureUnion([("scaled", StandardScaler()), ("square", FunctionTransformer(square))])
    grid = {"featureunion__scaled__with_mean": [True, False], "ridge__alpha": [1.0, 10.0]}
    return make_pipeline(union, Ridge()), grid


def square(X: Any) -> Any:
    """A function that can be pickled."""
    return X * X


@register("selected columns, tree", classes=True)
def selected_columns_tree(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """One fit of a fold serves several values; some are refused, or warned of."""
    seeded = partial(mutual_info_classif, random_state=draw(st.sampled_from([0, 7])))
    scores = draw(st.sampled_from([f_classif, magnitude, seeded]))
    selectors: list[tuple[Any, str, tuple[Any, ...]]] = [
        (SelectKBest(scores), "k", (1, 2, 3, "all", 0, 99, -1, 2.5)),
        (SelectPercentile(scores), "percentile", (10, 50.0, 100, 0, 101)),
        (SelectFdr(), "alpha", (0.01, 0.5, 1.0, 2.0)),
        (GenericUnivariateSelect(scores, mode="k_best"), "param", (1, 2, "all", 99)),
        (VarianceThreshold(), "threshold", (0.0, 1e-3, 0.5, 1.0, 1e9, -1.0)),
    ]
    step, param, values = draw(st.sampled_from(selectors))
    some = draw(st.lists(st.sampled_from(values), min_size=2, max_size=4, unique=True))
    grid = {f"{type(step).__name__.lower()}__{param}": some, "decisiontreeclassifier__max_depth": [1, 3]}
    return make_pipeline(step, DecisionTreeClassifier(random_state=0)), grid


@register("nested steps, tree", classes=True)
def nested_steps_tree(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Steps of which one fit of a fold serves several values; some are refused."""
    solver = draw(st.sampled_from(["auto", "full", "covariance_eigh", "arpack", "randomized"]))
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    rfe = RFE(draw(st.sampled_from([tree, Ridge()])), step=draw(st.sampled_from([1, 2, 0.4])))
    sequential = SequentialFeatureSelector(
        GaussianNB(), direction=draw(st.sampled_from(["forward", "backward"])), cv=2
    )
    clusters = FeatureAgglomeration(linkage=draw(st.sampled_from(["ward", "single", "average"])))
    pca = PCA(svd_solver=solver, whiten=draw(st.booleans()), random_state=0)
    steps: list[tuple[Any, str, tuple[Any, ...]]] = [
        (pca, "n_components", (1, 2, 3, None, 0.5, 0.9, 0.999, "mle", 0, 99)),
        (rfe, "n_features_to_select", (1, 2, 3, None, 0.5, 99, 0)),
        (SelectFromModel(tree), "threshold", ("mean", "median", "2*mean", None, 0.1, 1e9, "odd")),
        (SelectFromModel(Ridge()), "max_features", (1, 2, None, 0, 99, -1)),
        (sequential, "n_features_to_select", (1, 2, "auto", 0.5, 99)),
        (clusters, "n_clusters", (1, 2, 3, 4, 99)),
    ]
    step, param, values = draw(st.sampled_from(steps))
    some = draw(st.lists(st.sampled_from(values), min_size=2, max_size=4, unique=True))
    grid = {f"{type(step).__name__.lower()}__{param}": some, "decisiontreeclassifier__max_depth": [1, 3]}
    return make_pipeline(step, DecisionTreeClassifier(random_state=0)), grid


@register("imputed by neighbours, tree", classes=True)
def imputed_by_neighbours_tree(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Zeros are gaps; some settings are refused."""
    imputer = KNNImputer(
        missing_values=0.0, add_indicator=draw(st.booleans()), keep_empty_features=draw(st.booleans())
    )
    numbers = draw(st.lists(st.sampled_from([1, 2, 3, 50, 0]), min_size=1, max_size=3, unique=True))
    grid = {"knnimputer__n_neighbors": numbers, "knnimputer__weights": ["uniform", "distance"]}
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    return make_pipeline(FunctionTransformer(rounded), imputer, tree), grid


def rounded(X: Any) -> Any:
    """A function that can be pickled."""
    return np.rint(X) if isinstance(X, np.ndarray) else X


def magnitude(X: Any, y: Any) -> Any:
    """A score for each column, without p-values; a function that can be pickled."""
    return abs(X).sum(axis=0)
