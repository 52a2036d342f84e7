"""Kernel methods: ridge regression with matrices that may not be positive, and support vector machines."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as covariances
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from tests.differential._recipe import Recipe
from tests.differential._register import Grid, register
from tests.differential.families.least_squares import some

MACHINE_SCORERS = ("accuracy", "f1_macro", "balanced_accuracy")
KERNELS = ("rbf", "linear", "laplacian", "poly", "cosine", "sigmoid")


@register("scaler, kernel ridge")
def scaler_kernel_ridge(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    kernel, gamma = draw(st.sampled_from(KERNELS)), draw(st.sampled_from([None, 0.1, 3.0]))
    alphas = [0.05, 0.1, 0.5, 1.0, 3.0, 20.0, 300.0, *some(draw, 1e-3, 1e-9, 0.0, 1e9)]
    grid = {"kernelridge__alpha": alphas}
    return make_pipeline(MaxAbsScaler(), KernelRidge(kernel=kernel, gamma=gamma)), grid


@register("scaler, gaussian process")
def scaler_gaussian_process(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Its kernel matrix may not be positive definite, as with repeated rows and without noise."""
    shapes = [covariances.RBF(0.5), covariances.Matern(2.0), covariances.DotProduct() ** 2, None]
    kernel = draw(st.sampled_from(shapes))
    if kernel is not None and draw(st.booleans()):
        kernel = 2.0 * kernel + covariances.WhiteKernel(draw(st.sampled_from([1e-4, 0.5])))
    alphas = some(draw, 0.0, 1e-10, 1e-3, 0.1, 3)
    grid = {"alpha": [*alphas, 1.0], "normalize_y": some(draw, False, True), "optimizer": [None]}
    model = GaussianProcessRegressor(kernel)
    if draw(st.booleans()):
        return model, grid
    named = {f"gaussianprocessregressor__{name}": values for name, values in grid.items()}
    return make_pipeline(MaxAbsScaler(), model), named


def _machine(draw: st.DrawFn, *classes: type) -> tuple[Any, Grid]:
    """Numbers are at most 1, so that libsvm needs few iterations."""
    cls = draw(st.sampled_from(classes))
    kernel = draw(st.sampled_from(["rbf", "poly", "linear", "sigmoid"]))
    shrinking = draw(st.booleans())
    own = {"class_weight": draw(st.sampled_from([None, "balanced"]))} if cls in (SVC, NuSVC) else {}
    model = cls(kernel=kernel, shrinking=shrinking, max_iter=5000, **own)
    name, size = cls.__name__.lower(), "nu" if cls is NuSVC else "C"
    scaler = draw(st.sampled_from([MinMaxScaler(), MaxAbsScaler()]))  # the latter takes sparse rows
    return make_pipeline(scaler, model), {
        f"{name}__gamma": [draw(st.sampled_from(["scale", "auto", 0.1, 5.0])), 0.5],
        f"{name}__{size}": [0.05, 0.2, 0.4] if size == "nu" else [0.1, 1.0, 20.0],
    }


@register("scaler, support vectors of classes", classes=True, scorers=(*MACHINE_SCORERS, "roc_auc"))
def scaler_support_vectors_of_classes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return _machine(draw, SVC, NuSVC)


@register("scaler, support vectors of numbers")
def scaler_support_vectors_of_numbers(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    return _machine(draw, SVR, NuSVR)
