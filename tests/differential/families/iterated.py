"""Families that iterate: held to be no further than scikit-learn from the optimum (``_optimum.py``).

At the default `tol` two programs that stop where they may are compared loosely; the cases "to the end" leave
no room to stop early, so that their answers agree to many more digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_classif
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from tests.differential._recipe import Recipe, mostly
from tests.differential._register import CLASS_SCORERS, Grid, register

STRENGTHS = st.lists(st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 10.0]), min_size=1, max_size=4)
EXTREME = st.lists(st.sampled_from([1e-10, 1e-5, 1.0, 1e4, 1e8]), min_size=1, max_size=3)
SCORERS = (*CLASS_SCORERS, "roc_auc_ovr", "neg_brier_score", "neg_log_loss")
DEVIANCES = (
    "neg_mean_poisson_deviance",
    "neg_mean_gamma_deviance",
    "neg_mean_absolute_error",
    "neg_mean_squared_error",
    "r2",
)
# With the steps each may take: Newton's either arrive in a few dozen or spend seconds on not arriving.
SOLVERS = {"lbfgs": 10_000, "newton-cholesky": 300}
POSITIVE = ("counts", "zero counts", "sizes", "large sizes")


def _class_weight(draw: st.DrawFn, recipe: Recipe) -> Any:
    """None, "balanced", or weights of some classes by their labels; the others count once."""
    kind = draw(st.sampled_from(["none", "none", "balanced", "all", "some"]))
    if kind in ("none", "balanced"):
        return None if kind == "none" else kind
    labels = np.unique(recipe.build().labels).tolist()[:4]
    weights = dict(zip(labels, (1.0, 5.0, 0.2, 3.0), strict=False))
    return weights if kind == "all" else dict(list(weights.items())[-1:])


def _strengths(draw: st.DrawFn) -> list[float]:
    return draw(EXTREME if draw(st.integers(0, 3)) == 3 else STRENGTHS)


def _logistic(draw: st.DrawFn, recipe: Recipe, **params: Any) -> LogisticRegression:
    return LogisticRegression(
        class_weight=_class_weight(draw, recipe), fit_intercept=draw(st.integers(0, 3)) < 3, **params
    )


@register("logistic regression", classes=True, scorers=SCORERS, result="converged")
def logistic_regression(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    grid: dict[str, Any] = {"C": _strengths(draw)}
    if draw(st.booleans()):
        grid["fit_intercept"] = [True, False]
    if draw(st.integers(0, 5)) == 5:
        grid["class_weight"] = [None, "balanced"]
    return _logistic(draw, recipe, tol=draw(st.sampled_from([1e-4, 1e-6])), max_iter=10_000), grid


@register(
    "logistic regression, to the end",
    classes=True,
    scorers=SCORERS,
    result="converged",
    tolerance=1e-6,
)
def logistic_regression_to_the_end(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    solver = draw(st.sampled_from([*SOLVERS, "newton-cg"]))
    max_iter = SOLVERS.get(solver, 300)
    return _logistic(draw, recipe, tol=1e-10, max_iter=max_iter, solver=solver), {"C": draw(STRENGTHS)}


@register(
    "logistic regression, liblinear",
    classes=True,
    scorers=("accuracy", "roc_auc", "neg_log_loss"),
    result="converged",
)
def logistic_regression_of_liblinear(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    """Of more than two classes scikit-learn has none."""
    model = _logistic(draw, recipe, solver="liblinear", tol=draw(st.sampled_from([1e-4, 1e-6])))
    return model.set_params(max_iter=1_000), {"C": _strengths(draw)}


# scikit-learn 1.8 names a penalty by its ratio.
L1 = {"l1_ratio": 1.0} if LogisticRegression().get_params()["penalty"] != "l2" else {"penalty": "l1"}


@register(
    "logistic regression, l1",
    classes=True,
    scorers=("accuracy", "roc_auc", "neg_log_loss"),
    result="converged",
    tight={"tol": 1e-9, "max_iter": 3_000},
)
def logistic_regression_with_l1(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = _logistic(draw, recipe, solver="liblinear", tol=1e-6, max_iter=1_000, random_state=0, **L1)
    return model, {"C": _strengths(draw)}


@register(
    "one against the rest",
    classes=True,
    scorers=("accuracy", "balanced_accuracy", "roc_auc_ovr", "neg_log_loss"),
    result="converged",
)
def one_against_the_rest(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    solver = draw(st.sampled_from(["lbfgs", "newton-cholesky", "liblinear"]))
    model: Any = LogisticRegression(solver=solver, tol=1e-6, max_iter=300)
    if draw(st.integers(0, 2)) == 2:
        model = LinearSVC(dual=False, tol=1e-6, max_iter=10_000)
    model.set_params(class_weight=draw(st.sampled_from([None, "balanced", {0: 1.0, 1: 3.0}])))
    return OneVsRestClassifier(model), {"estimator__C": draw(STRENGTHS)}


STEPS: dict[str, list[tuple[str, Any]]] = {
    "scale": [("scale", StandardScaler())],
    "scale only": [("scale", StandardScaler(with_mean=False))],
    "scale, pca": [("scale", StandardScaler()), ("pca", PCA(1))],
    "whiten": [("pca", PCA(0.9, whiten=True))],
    "threshold, scale": [("threshold", VarianceThreshold()), ("scale", StandardScaler())],
    "min and max": [("scale", MinMaxScaler())],
    "squares, scale": [("squares", PolynomialFeatures(2)), ("scale", StandardScaler())],
}
CLASS_STEPS = STEPS | {"select": [("scale", StandardScaler()), ("select", SelectKBest(f_classif, k=1))]}


def _step_grid(draw: st.DrawFn, steps: list[tuple[str, Any]]) -> dict[str, Any]:
    """Now and then parameters of a step, or another step in its place."""
    names = [name for name, _ in steps]
    choices: list[dict[str, Any]] = [{"scale": ["passthrough", StandardScaler()]}] if "scale" in names else []
    if "pca" in names:
        choices += [{"pca__n_components": [1, 0.8, None]}, {"pca__whiten": [False, True]}]
    return mostly(draw, {}, tuple(choices), odds=1) if choices else {}


@register(
    "steps, logistic regression",
    classes=True,
    scorers=SCORERS,
    result="converged",
    tolerance=1e-6,
)
def steps_logistic_regression(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    steps = CLASS_STEPS[draw(st.sampled_from(sorted(CLASS_STEPS)))]
    model = _logistic(draw, recipe, tol=1e-9, max_iter=10_000)
    grid = {"model__C": _strengths(draw), **_step_grid(draw, steps)}
    return Pipeline([*steps, ("model", model)]), grid


def _generalised(draw: st.DrawFn, **params: Any) -> Any:
    models = [PoissonRegressor(), GammaRegressor(), TweedieRegressor(power=1.5), TweedieRegressor(power=1)]
    return draw(st.sampled_from(models)).set_params(**params)


@register("generalised linear model", targets=POSITIVE, scorers=DEVIANCES, result="converged")
def generalised_linear_model(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = _generalised(draw, tol=draw(st.sampled_from([1e-4, 1e-6])), max_iter=10_000)
    grid: dict[str, Any] = {"alpha": _strengths(draw)}
    if draw(st.booleans()):
        grid["fit_intercept"] = [True, False]
    return model, grid


@register(
    "steps, generalised linear model",
    targets=POSITIVE,
    scorers=DEVIANCES,
    result="converged",
    tolerance=1e-6,
)
def steps_generalised_linear_model(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    steps = STEPS[draw(st.sampled_from(sorted(STEPS)))]
    solver = draw(st.sampled_from([*SOLVERS]))
    model = _generalised(draw, tol=1e-9, max_iter=SOLVERS[solver], solver=solver)
    return Pipeline([*steps, ("model", model)]), {"model__alpha": _strengths(draw), **_step_grid(draw, steps)}


@register(
    "linear svc",
    classes=True,
    scorers=("accuracy", "balanced_accuracy", "roc_auc"),
    result="converged",
)
def linear_svc(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    weight, intercept = _class_weight(draw, recipe), draw(st.booleans())
    model = LinearSVC(class_weight=weight, fit_intercept=intercept, dual=False, tol=1e-6, max_iter=10_000)
    return model, {"C": draw(STRENGTHS)}


@register("linear svr", scorers=("r2", "neg_mean_absolute_error"), result="converged")
def linear_svr(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    loss = "squared_epsilon_insensitive"
    model = LinearSVR(
        loss=loss, epsilon=draw(st.sampled_from([0.0, 0.3])), dual=False, tol=1e-6, max_iter=10_000
    )
    return model, {"C": draw(STRENGTHS), "fit_intercept": draw(st.sampled_from([[True], [True, False]]))}
