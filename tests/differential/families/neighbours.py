"""Nearest neighbours: ties, zero distances and votes that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tests.differential._recipe import Recipe
from tests.differential._register import CLASS_SCORERS, Grid, register
from tests.differential.families.least_squares import some

METRICS = ({}, {}, {"p": 1}, {"p": 3}, {"metric": "chebyshev"}, {"metric": "cosine"}, {"metric": "canberra"})
# Others than R2, which is not defined for one row.
ERRORS = ("neg_mean_squared_error", "neg_mean_absolute_error", "r2")
ALGORITHMS = ("auto", "brute", "kd_tree", "ball_tree")


def _search(draw: st.DrawFn, cls: Any) -> tuple[Any, Grid]:
    """Half of the time on whole numbers, of which many are equally far."""
    params = draw(st.sampled_from(METRICS))
    algorithm = "auto" if "metric" in params else draw(st.sampled_from(ALGORITHMS))
    model = cls(algorithm=algorithm, leaf_size=draw(st.sampled_from([2, 30])), **params)
    grid = {
        "n_neighbors": some(draw, 1, 2, 3, 4, 6, 11, 40),
        "weights": some(draw, "uniform", "distance", None),
    }
    if draw(st.booleans()):
        return model, grid
    step = FunctionTransformer(whole, accept_sparse=True)
    return make_pipeline(step, model), {f"{cls.__name__.lower()}__{name}": v for name, v in grid.items()}


def whole(X: Any) -> Any:
    """The nearest whole numbers, which may be many times the same; a function that can be pickled."""
    return np.rint(X) if isinstance(X, np.ndarray) else X


@register("neighbours", classes=True, scorers=(*CLASS_SCORERS, "roc_auc_ovr"))
def neighbours(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return _search(draw, KNeighborsClassifier)


@register("neighbours regression")
def neighbours_regression(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return _search(draw, KNeighborsRegressor)


@register("neighbours, small sets", classes=True, scorers=CLASS_SCORERS, small_sets=True)
def neighbours_of_small_sets(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Single rows are left out of one query."""
    return _search(draw, KNeighborsClassifier)


@register("neighbours regression, small sets", scorers=ERRORS, small_sets=True)
def neighbours_regression_of_small_sets(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return _search(draw, KNeighborsRegressor)


def _radius_search(draw: st.DrawFn, cls: Any, **params: Any) -> tuple[Any, Grid]:
    """Half of the time on whole numbers, of which many are exactly at a radius."""
    params |= draw(st.sampled_from(METRICS))
    if "metric" not in params:
        params["algorithm"] = draw(st.sampled_from(ALGORITHMS))
    model = cls(
        leaf_size=draw(st.sampled_from([2, 30])), n_jobs=draw(st.sampled_from([None, None, 2])), **params
    )
    grid = {
        "radius": some(draw, 0.3, 0.9, 1.0, 1.5, 2, 2.5, 3.0, 5.0, 1e3),
        "weights": some(draw, "uniform", "distance", None),
    }
    if draw(st.booleans()):
        return model, grid
    step = FunctionTransformer(whole, accept_sparse=True)
    return make_pipeline(step, model), {f"{cls.__name__.lower()}__{name}": v for name, v in grid.items()}


@register("radius neighbours", classes=True, scorers=(*CLASS_SCORERS, "roc_auc_ovr"))
def radius_neighbours(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    label = draw(st.sampled_from([None, "most_frequent", "most_frequent"]))
    return _radius_search(draw, RadiusNeighborsClassifier, outlier_label=label)


@register("radius neighbours regression")
def radius_neighbours_regression(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return _radius_search(draw, RadiusNeighborsRegressor)
