"""Families that iterate: held to be no further than scikit-learn from its own answer at a tight `tol`."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .._recipe import Recipe
from .._register import Grid, register

STRENGTHS = st.lists(st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 10.0]), min_size=1, max_size=4)
LOGISTIC = {"tol": 1e-11, "max_iter": 100_000}
POSITIVE = ("counts",)


@register("logistic regression", classes=True, result="converged", tight=LOGISTIC)
def logistic_regression(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid: dict[str, Any] = {"C": draw(STRENGTHS)}
    if draw(st.booleans()):
        grid["fit_intercept"] = [True, False]
    weight = draw(st.sampled_from([None, "balanced"]))
    return LogisticRegression(class_weight=weight, tol=1e-5, max_iter=10_000), grid


@register(
    "scaler, logistic regression",
    classes=True,
    result="converged",
    tight={f"logisticregression__{name}": value for name, value in LOGISTIC.items()},
)
def scaler_logistic_regression(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = LogisticRegression(tol=1e-5, max_iter=10_000, fit_intercept=draw(st.booleans()))
    steps = draw(st.sampled_from([[StandardScaler()], [StandardScaler(), PCA(1)], [MinMaxScaler()]]))
    return make_pipeline(*steps, model), {"logisticregression__C": draw(STRENGTHS)}


@register(
    "generalised linear model",
    targets=POSITIVE,
    scorers=("neg_mean_absolute_error", "neg_mean_squared_error"),
    result="converged",
    tight={"tol": 1e-11, "max_iter": 100_000},
)
def generalised_linear_model(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = draw(st.sampled_from([PoissonRegressor(), GammaRegressor(), TweedieRegressor(power=1.5)]))
    model.set_params(tol=1e-6, max_iter=10_000)
    return model, {"alpha": draw(STRENGTHS), "fit_intercept": draw(st.sampled_from([[True], [True, False]]))}
