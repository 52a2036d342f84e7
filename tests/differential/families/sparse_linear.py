"""Linear models with an l1 penalty, which scikit-learn's own solver fits on moments."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    MultiTaskElasticNet,
    MultiTaskLasso,
    OrthogonalMatchingPursuit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.differential._recipe import Recipe
from tests.differential._register import Grid, register
from tests.differential.families.least_squares import sizes, some

ALPHAS = st.lists(st.sampled_from([1e-8, 1e-3, 0.01, 0.1, 1.0, 10.0, 1e3]), min_size=1, max_size=4)


@register("lasso")
def lasso(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid: dict[str, Any] = {"alpha": draw(ALPHAS)}
    if draw(st.booleans()):
        grid["positive"] = some(draw, True, False)
    return Lasso(fit_intercept=draw(st.booleans()), precompute=draw(st.booleans())), grid


@register("elastic net")
def elastic_net(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid = {"alpha": draw(ALPHAS), "l1_ratio": some(draw, 0.0, 0.1, 0.5, 1.0, 2.0)}
    return ElasticNet(tol=draw(st.sampled_from([1e-2, 1e-4, 1e-8])), positive=draw(st.booleans())), grid


@register("steps, elastic net")
def steps_elastic_net(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = draw(st.sampled_from([Lasso(), ElasticNet(), Lasso(selection="random", random_state=0)]))
    name = type(model).__name__.lower()
    return make_pipeline(StandardScaler(), model), {f"{name}__alpha": draw(ALPHAS)}


@register("several tasks")
def several_tasks(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = draw(st.sampled_from([MultiTaskLasso(), MultiTaskElasticNet(), MultiTaskLasso(tol=1e-6)]))
    return model.set_params(fit_intercept=draw(st.booleans())), {"alpha": draw(ALPHAS)}


@register("matching pursuit")
def matching_pursuit(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    counts = [*sizes(draw, recipe), *draw(st.sampled_from([[], [None]]))]
    return OrthogonalMatchingPursuit(fit_intercept=draw(st.booleans())), {"n_nonzero_coefs": counts}
