"""Meta-estimators around least squares: targets transformed, or fitted one by one, or classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import BayesianRidge, ElasticNet, Lasso, LinearRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from tests.differential._recipe import REGRESSION, Recipe
from tests.differential._register import Grid, register
from tests.differential.families.least_squares import some

POSITIVE = ("sizes", "counts", "large sizes", "offset", "small variance", "zero counts", "noisy", "integer")
FUNCTIONS = [(np.log, np.exp), (np.log1p, np.expm1), (np.sqrt, np.square), (np.negative, np.negative),
             (np.exp, np.log), (np.cbrt, lambda z: z**3)]  # fmt: skip
SCALERS = (None, StandardScaler(), StandardScaler(with_mean=False), MinMaxScaler((-1, 3)), MaxAbsScaler(),
           RobustScaler(), MinMaxScaler(clip=True))  # fmt: skip


def _model(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    """A linear model, alone or behind a step, and a grid for it."""
    alpha = some(draw, 1e-3, 0.1, 1.0, 10.0)
    model, grid = draw(
        st.sampled_from(
            [
                (Ridge(), {"alpha": alpha, "fit_intercept": [True, False]}),
                (Ridge(0.1), {"alpha": alpha}),
                (LinearRegression(), {"fit_intercept": [True, False]}),
                (Lasso(tol=1e-8, max_iter=20_000), {"alpha": alpha}),
                (ElasticNet(tol=1e-8, max_iter=20_000), {"alpha": alpha, "l1_ratio": [0.2, 0.9]}),
            ]
        )
    )
    before = draw(st.sampled_from([None, StandardScaler(), SelectKBest(f_regression, k=1)]))
    if before is None:
        return model, grid
    return Pipeline([("step", before), ("model", model)]), {f"model__{k}": v for k, v in grid.items()}


def _behind(draw: st.DrawFn, model: Any, grid: dict[str, Any]) -> tuple[Any, Grid]:
    """A meta-estimator alone, or behind a step."""
    step = draw(st.sampled_from([None, StandardScaler(), SelectKBest(f_regression, k=1)]))
    if step is None:
        return model, grid
    name = type(model).__name__.lower()
    return make_pipeline(step, model), {f"{name}__{key}": values for key, values in grid.items()}


@register("function of the target", targets=POSITIVE)
def function_of_target(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Functions that some targets have no value of, and some that are not inverse to each other."""
    model, grid = _model(draw)
    func, inverse_func = draw(st.sampled_from(FUNCTIONS))
    if draw(st.integers(0, 7)) == 7:
        inverse_func = draw(st.sampled_from([None, np.tanh]))
    target = TransformedTargetRegressor(
        model, func=func, inverse_func=inverse_func, check_inverse=draw(st.booleans())
    )
    return _behind(draw, target, {f"regressor__{key}": values for key, values in grid.items()})


@register("scaled target", targets=REGRESSION)
def scaled_target(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model, grid = _model(draw)
    grid = {f"regressor__{key}": values for key, values in grid.items()}
    return _behind(draw, TransformedTargetRegressor(model), grid | {"transformer": some(draw, *SCALERS)})


@register("several targets, one by one", targets=("two outputs", "three outputs", "column", "noisy"))
def several_targets(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model, grid = _model(draw)
    if draw(st.integers(0, 3)) == 3:
        model, grid = BayesianRidge(), {"alpha_1": [1e-6, 0.1], "lambda_1": [1e-6, 0.1]}
    return _behind(draw, MultiOutputRegressor(model), {f"estimator__{k}": v for k, v in grid.items()})


@register(
    "ridge, one against the rest",
    classes=True,
    scorers=("accuracy", "balanced_accuracy", "roc_auc_ovr"),
)
def ridge_against_the_rest(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    weight = draw(st.sampled_from([None, None, "balanced"]))
    model = OneVsRestClassifier(RidgeClassifier(class_weight=weight))
    alpha = some(draw, 1e-3, 0.1, 1.0, 10.0)
    return _behind(draw, model, {"estimator__alpha": alpha, "estimator__fit_intercept": [True, False]})
