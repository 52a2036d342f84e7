"""Naive Bayes, discriminant analysis and nearest centroids: one fit, or the moments of each class, a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tests.differential._recipe import Recipe
from tests.differential._register import CLASS_SCORERS, Grid, register
from tests.differential.families.least_squares import some

SCORERS = (*CLASS_SCORERS, "roc_auc_ovr", "neg_brier_score", "average_precision")
ALPHAS = (1.0, 0.1, 1e-3, 1e-9, 1e-12, 0.0, 50.0, -1.0)
SHRINKAGES = (None, 0.0, 0.1, 0.9, 1.0, "auto", 2.0)


def _priors(draw: st.DrawFn, recipe: Recipe, *others: Any) -> list[Any]:
    """None or a name, and now and then numbers, which may not fit."""
    k = len(np.unique(recipe.build().labels.astype(str)))
    given = [[1.0 / k] * k, list(np.arange(1.0, k + 1) / np.arange(1.0, k + 1).sum()), [0.5, 0.2]]
    return some(draw, *others, *(given if draw(st.integers(0, 2)) == 2 else ()))


@register("counts, naive bayes", classes=True, scorers=SCORERS)
def counts_naive_bayes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Fractions, whole numbers and, seldom, negative ones."""
    to_counts = draw(st.sampled_from([np.abs, magnitudes, None]))
    model = draw(st.sampled_from([MultinomialNB(), ComplementNB(), BernoulliNB(binarize=0.5)]))
    name = type(model).__name__.lower()
    grid: dict[str, Any] = {f"{name}__alpha": some(draw, *ALPHAS)}
    if draw(st.booleans()):
        grid[f"{name}__fit_prior"] = [True, False]
        grid[f"{name}__class_prior"] = _priors(draw, recipe, None)
    if isinstance(model, ComplementNB):
        grid[f"{name}__norm"] = [True, False]
    if draw(st.integers(0, 3)) == 3:
        grid[f"{name}__force_alpha"] = [True, False]
    return make_pipeline(FunctionTransformer(to_counts), model), grid


def magnitudes(X: Any) -> Any:
    """Whole numbers from 0 to 6; a function that can be pickled."""
    return np.minimum(np.abs(np.rint(np.nan_to_num(X))), 6)


@register("bernoulli naive bayes", classes=True, scorers=SCORERS)
def bernoulli_naive_bayes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return BernoulliNB(), {"alpha": some(draw, *ALPHAS), "binarize": some(draw, 0.0, 0.5, -1.0)}


@register("categories, naive bayes", classes=True, scorers=SCORERS)
def categories_naive_bayes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = CategoricalNB(min_categories=draw(st.sampled_from([None, 7, 9])))
    grid = {"categoricalnb__alpha": some(draw, *ALPHAS), "categoricalnb__fit_prior": [True, False]}
    return make_pipeline(FunctionTransformer(magnitudes), model), grid


@register("gaussian naive bayes", classes=True, scorers=SCORERS)
def gaussian_naive_bayes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    smoothings = some(draw, 0.0, 1e-9, 1e-3, 1.0, 100.0)
    return GaussianNB(), {"var_smoothing": smoothings, "priors": _priors(draw, recipe, None)}


@register("nearest centroid", classes=True, scorers=SCORERS)
def nearest_centroid(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    thresholds = some(draw, None, 0.01, 0.5, 3.0, -1.0)
    grid = {"shrink_threshold": thresholds, "priors": _priors(draw, recipe, "uniform", "empirical")}
    return NearestCentroid(), grid


@register("quadratic discriminant", classes=True, scorers=SCORERS)
def quadratic_discriminant(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid = {"reg_param": some(draw, 0.0, 1e-3, 0.5, 1.0), "tol": some(draw, 1e-4, 1e-10, 0.3)}
    return QuadraticDiscriminantAnalysis(), grid | {"priors": _priors(draw, recipe, None)}


@register("linear discriminant", classes=True, scorers=SCORERS)
def linear_discriminant(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    solver = draw(st.sampled_from(["lsqr", "eigen"]))
    grid = {"shrinkage": some(draw, *SHRINKAGES), "priors": _priors(draw, recipe, None)}
    return LinearDiscriminantAnalysis(solver=solver), grid


@register("scaler, linear discriminant, svd", classes=True, scorers=SCORERS)
def linear_discriminant_svd(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    name = "lineardiscriminantanalysis"
    grid = {f"{name}__tol": some(draw, 1e-4, 1e-8, 0.1), f"{name}__priors": _priors(draw, recipe, None)}
    if draw(st.booleans()):
        grid[f"{name}__n_components"] = [None, 1, 3]
    return make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()), grid
