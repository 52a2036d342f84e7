"""Kernel ridge regression: kernel matrices from well conditioned to not positive."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from tests.differential._recipe import Recipe
from tests.differential._register import Grid, register
from tests.differential.families.least_squares import some

KERNELS = ("rbf", "linear", "laplacian", "poly", "cosine", "sigmoid")


@register("scaler, kernel ridge")
def scaler_kernel_ridge(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    kernel, gamma = draw(st.sampled_from(KERNELS)), draw(st.sampled_from([None, 0.1, 3.0]))
    alphas = [0.05, 0.1, 0.5, 1.0, 3.0, 20.0, 300.0, *some(draw, 1e-3, 1e-9, 0.0, 1e9)]
    grid = {"kernelridge__alpha": alphas}
    return make_pipeline(MaxAbsScaler(), KernelRidge(kernel=kernel, gamma=gamma)), grid
