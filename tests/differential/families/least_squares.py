"""Least squares behind affine steps: what moments answer, and near neighbours that they must not answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    Lars,
    LassoLars,
    LinearRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.differential._recipe import Recipe
from tests.differential._register import Grid, register

ALPHAS = st.sampled_from([0.0, 1e-8, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6])
SOME_ALPHAS = st.lists(st.sampled_from([1e-3, 0.1, 1.0, 10.0]), min_size=1, max_size=2, unique=True)


def some(draw: st.DrawFn, *values: Any) -> list[Any]:
    """One to all of the values."""
    return draw(st.lists(st.sampled_from(values), min_size=1, max_size=min(3, len(values)), unique_by=repr))


def sizes(draw: st.DrawFn, recipe: Recipe) -> list[int]:
    """Numbers of columns to keep, seldom more than there are."""
    most = max(1, min(recipe.p, recipe.n // 3)) + (draw(st.integers(0, 9)) == 9)
    return draw(st.lists(st.integers(1, most), min_size=1, max_size=2, unique=True))


@register("ridge")
def ridge(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid: dict[str, Any] = {"alpha": draw(st.lists(ALPHAS, min_size=1, max_size=4))}
    if draw(st.booleans()):
        grid["fit_intercept"] = some(draw, True, False)
    return Ridge(fit_intercept=draw(st.booleans())), grid


@register("ridge, small sets", small_sets=True)
def ridge_small_sets(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Small sets of rows are left out of one fit."""
    if draw(st.integers(0, 3)) == 3:
        return LinearRegression(), {"fit_intercept": some(draw, True, False)}
    alphas = st.one_of(ALPHAS, st.sampled_from([1e-12, 1e-5, 1e12]))
    grid = {"alpha": draw(st.lists(alphas, min_size=1, max_size=2))}
    solver = draw(st.sampled_from(["auto", "auto", "svd", "cholesky"]))
    return Ridge(fit_intercept=draw(st.booleans()), solver=solver), grid


@register("linear regression")
def linear_regression(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return LinearRegression(), {"fit_intercept": some(draw, True, False)}


@register("ridge, other settings")
def ridge_other_settings(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Solvers and penalties that a family may leave alone; invalid ones cost only themselves."""
    outputs = {"two outputs": 2, "one constant output": 2, "three outputs": 3}.get(recipe.target, 1)
    alphas = draw(st.lists(ALPHAS, min_size=1, max_size=3)) + [np.logspace(-1, 1, outputs), -1.0, "1"]
    grids: list[dict[str, Any]] = [
        {"alpha": some(draw, *alphas)},
        {"alpha": [0.5, 2.0], "solver": some(draw, "auto", "svd", "cholesky", "lsqr", "saga")},
        {"alpha": [0.5, 2.0], "positive": [True, False]},
        {"alpha": [0.5], "copy_X": [True], "max_iter": [None, 1000], "tol": [1e-4, 1e-8]},
    ]
    return Ridge(random_state=0), draw(st.sampled_from([*grids, grids[:3]]))


@register("linear regression, other settings")
def linear_regression_other_settings(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return LinearRegression(), {"positive": some(draw, True, False), "fit_intercept": some(draw, True, False)}


@register("scaler, ridge")
def scaler_ridge(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid: dict[str, Any] = {"ridge__alpha": draw(SOME_ALPHAS)}
    if draw(st.booleans()):
        grid["standardscaler__with_mean"] = some(draw, True, False)
    if draw(st.booleans()):
        grid["standardscaler__with_std"] = some(draw, True, False)
    return make_pipeline(StandardScaler(), Ridge(fit_intercept=draw(st.booleans()))), grid


@register("scaler, linear regression")
def scaler_linear_regression(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid = {
        "standardscaler__with_std": some(draw, True, False),
        "linearregression__fit_intercept": [True, False],
    }
    return make_pipeline(StandardScaler(), LinearRegression()), grid


def components(draw: st.DrawFn, recipe: Recipe) -> list[Any]:
    """Any of the kinds of `n_components`."""
    ints = sizes(draw, recipe)
    return draw(st.sampled_from([ints, [*ints, None], [0.5, 0.9], [0.3, *ints], [None]]))


@register("scaler, pca, ridge")
def scaler_pca_ridge(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid: dict[str, Any] = {"pca__n_components": components(draw, recipe), "ridge__alpha": draw(SOME_ALPHAS)}
    if draw(st.booleans()):
        grid["pca__whiten"] = some(draw, True, False)
    return make_pipeline(StandardScaler(), PCA(), Ridge()), grid


@register("pca, linear model")
def pca_linear_model(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = draw(st.sampled_from([LinearRegression(), Ridge(0.1), Ridge(1.0, fit_intercept=False)]))
    grid: dict[str, Any] = {"reduce__n_components": components(draw, recipe)}
    if draw(st.booleans()):
        grid["reduce__svd_solver"] = some(draw, "full", "covariance_eigh", "auto", "randomized", "arpack")
    return Pipeline([("reduce", PCA(random_state=0)), ("model", model)]), grid


@register("variance threshold, ridge")
def variance_threshold_ridge(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid = {
        "variancethreshold__threshold": some(draw, 0.0, 1e-6, 0.5, 1.0, 1e12),
        "ridge__alpha": draw(SOME_ALPHAS),
    }
    return make_pipeline(VarianceThreshold(), Ridge()), grid


@register("select k best, ridge")
def select_k_best_ridge(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = draw(st.sampled_from([Ridge(), LinearRegression(), Ridge(1e-3, fit_intercept=False)]))
    ks = [*sizes(draw, recipe), *draw(st.sampled_from([[], ["all"], [recipe.p + 3]]))]
    return Pipeline([("select", SelectKBest(f_regression)), ("model", model)]), {"select__k": ks}


STEPS = {
    "scale": (StandardScaler(), {"with_mean": [True, False], "with_std": [True, False]}),
    "threshold": (VarianceThreshold(), {"threshold": [0.0, 1e-6]}),
    "select": (SelectKBest(f_regression), {"k": [1, 2, "all"]}),
    "pca": (PCA(random_state=0), {"n_components": [1, 2, 0.8, None], "whiten": [False, True]}),
    "nothing": ("passthrough", {}),
}


def _step_grid(draw: st.DrawFn, kind: str, name: str) -> dict[str, list[Any]]:
    """Some parameters of a step, or "passthrough" in place of it."""
    step, parameters = STEPS[kind]
    if kind == "nothing" or draw(st.integers(0, 3)) == 0:
        other = draw(st.sampled_from([StandardScaler(), VarianceThreshold()]))
        return {
            name: draw(
                st.sampled_from([["passthrough", step], ["passthrough", other], [None, "passthrough"]])
            )
        }
    chosen = draw(st.lists(st.sampled_from(sorted(parameters)), max_size=1))
    return {f"{name}__{key}": some(draw, *parameters[key]) for key in chosen}


@register("deep pipeline")
def deep_pipeline(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Up to three steps in any order, some of them searched over, one grid or two."""
    kinds = draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3))
    names = [f"{kind}{i}" for i, kind in enumerate(kinds)]
    steps = [(name, STEPS[kind][0]) for name, kind in zip(names, kinds, strict=True)]
    grid: dict[str, Any] = {"model__alpha": draw(SOME_ALPHAS)}
    for name, kind in zip(names, kinds, strict=True):
        grid |= _step_grid(draw, kind, name)
    other = {"model": [LinearRegression(), Ridge(2.0), Ridge(3.0)]}
    return Pipeline([*steps, ("model", Ridge())]), grid if draw(st.booleans()) else [grid, other]


@register("nested pipelines")
def nested_pipelines(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    # On sparse rows scikit-learn's solver is arpack, which starts from a random vector.
    inner = Pipeline([("scale", StandardScaler()), ("pca", PCA(1, random_state=0))])
    grid = {"first__pca__n_components": components(draw, recipe), "last__ridge__alpha": draw(SOME_ALPHAS)}
    if draw(st.booleans()):
        grid["first__scale"] = some(draw, "passthrough", StandardScaler(with_std=False), StandardScaler())
    last = make_pipeline(VarianceThreshold(), Ridge())
    return Pipeline([("first", inner), ("last", last)]), grid


@register("ridge classifier", classes=True, scorers=("accuracy", "balanced_accuracy", "roc_auc", "f1_macro"))
def ridge_classifier(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = RidgeClassifier(
        fit_intercept=draw(st.booleans()), class_weight=draw(st.sampled_from([None, None, "balanced"]))
    )
    alphas = draw(st.lists(ALPHAS, min_size=1, max_size=4))
    if draw(st.booleans()):
        return model, {"alpha": alphas}
    return make_pipeline(StandardScaler(), model), {"ridgeclassifier__alpha": alphas}


@register("ridge classifier, small sets", classes=True, scorers=("accuracy", "f1_macro"), small_sets=True)
def ridge_classifier_small_sets(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    alphas = draw(st.lists(st.sampled_from([1e-5, 0.1, 1.0, 1e3]), min_size=1, max_size=2))
    return RidgeClassifier(fit_intercept=draw(st.booleans())), {"alpha": alphas}


@register("bayesian ridge")
def bayesian_ridge(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = BayesianRidge(tol=draw(st.sampled_from([1e-3, 1e-8])), fit_intercept=draw(st.booleans()))
    grid: dict[str, Any] = {"alpha_1": some(draw, 0.0, 1e-6, 1.0), "lambda_1": some(draw, 0.0, 1e-6, 10.0)}
    if draw(st.booleans()):
        grid["lambda_init"] = some(draw, None, 1e-3, 100.0)
    return model, grid


@register("partial least squares")
def partial_least_squares(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Numbers of components, seldom more than there may be, and few iterations for several targets."""
    grid: dict[str, Any] = {"n_components": [1, *sizes(draw, recipe)], "scale": some(draw, True, False)}
    if draw(st.integers(0, 3)) == 3:
        grid |= {"max_iter": some(draw, 1, 3, 500), "tol": some(draw, 1e-6, 1e-12)}
    return PLSRegression(), grid


@register("least angles")
def least_angles(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    if draw(st.booleans()):
        return Lars(fit_intercept=draw(st.booleans()), fit_path=draw(st.booleans())), {
            "n_nonzero_coefs": [*sizes(draw, recipe), 500]
        }
    model = LassoLars(fit_intercept=draw(st.booleans()), positive=draw(st.booleans()))
    return model, {"alpha": some(draw, 0.0, 1e-4, 0.01, 0.1, 1.0, 100.0), "max_iter": some(draw, 2, 500)}


@register("relevance of features")
def relevance_of_features(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid = {"alpha_1": some(draw, 0.0, 1e-6, 0.1), "lambda_1": some(draw, 1e-6, 0.1)}
    grid["threshold_lambda"] = some(draw, 1e4, 10.0, 0.5)
    return ARDRegression(max_iter=draw(st.sampled_from([3, 300]))), grid
