"""Nearest neighbours: ties, zero distances and votes that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tests.differential._recipe import Recipe
from tests.differential._register import CLASS_SCORERS, Grid, register
from tests.differential.families.least_squares import some

METRICS = ({}, {}, {"p": 1}, {"p": 3}, {"metric": "chebyshev"}, {"metric": "cosine"}, {"metric": "canberra"})
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
