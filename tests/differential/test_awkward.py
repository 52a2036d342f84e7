"""Each awkward thing the recipes know, once with each of a few pipelines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.differential._compare import check
from tests.differential._options import Options
from tests.differential._problem import Problem
from tests.differential._recipe import (
    BASES,
    FORMS,
    REFUSED_TARGETS,
    REGRESSION,
    TARGET_FORMS,
    TWISTS,
    WEIGHTS,
    Recipe,
)
from tests.differential._register import REGRESSION_SCORERS, Grid, case_named
from tests.differential._splits import LISTS, SPLITTERS, Splits
from tests.differential._subject import subject

LEAST_SQUARES = case_named("scaler, ridge")
PLAIN = Recipe(n=20, p=4, seed=1)
SPLITS = Splits("KFold", 3, 0)
OPTIONS = Options(
    scorers=("r2", "neg_mean_squared_error", "neg_median_absolute_error"),
    form="list",
    return_train_score=True,
)
PIPELINES: dict[str, tuple[Any, Grid]] = {
    "ridge": (Ridge(), {"alpha": [0.01, 10.0], "fit_intercept": [True, False]}),
    "ols": (make_pipeline(SelectKBest(f_regression), LinearRegression()), {"selectkbest__k": [2, "all"]}),
    "affine": (
        make_pipeline(StandardScaler(), PCA(), Ridge()),
        {"pca__n_components": [2, 0.9], "pca__whiten": [False, True], "ridge__alpha": [0.1]},
    ),
}


def _recipes() -> dict[str, Recipe]:
    """What the arithmetic meets: each with every pipeline."""
    found = {f"twist-{name}": replace(PLAIN, twists=(name,)) for name in TWISTS}
    found |= {f"base-{name}": replace(PLAIN, base=name) for name in BASES}
    found |= {f"float32-{name}": replace(PLAIN, base=name, dtype="float32") for name in BASES}
    found |= {f"target-{name}": replace(PLAIN, target=name) for name in (*REGRESSION, *REFUSED_TARGETS)}
    found |= {f"weights-{name}": replace(PLAIN, weights=name) for name in WEIGHTS}
    shapes = {"wide": (9, 12), "tall": (200, 4), "one-column": (20, 1), "square": (6, 4)}
    return found | {name: replace(PLAIN, n=n, p=p) for name, (n, p) in shapes.items()}


def _forms() -> dict[str, Recipe]:
    """In what the arrays come: the pipeline makes no difference."""
    found = {f"form-{name}": replace(PLAIN, form=name) for name in FORMS}
    found |= {f"target-form-{name}": replace(PLAIN, target_form=name) for name in TARGET_FORMS}
    return found | {name: replace(PLAIN, dtype=name) for name in ("int32", "int64")}


def _problem(pipeline: str, recipe: Recipe, splits: Splits, options: Options) -> Problem:
    estimator, grid = PIPELINES[pipeline]
    return Problem(LEAST_SQUARES, estimator, grid, recipe, splits, options)


@pytest.mark.invariant("Scores, ranks, NaN, errors and warnings are scikit-learn's")
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("recipe", _recipes().values(), ids=_recipes())
def test_each_kind_of_data(recipe: Recipe, pipeline: str) -> None:
    check(_problem(pipeline, recipe, SPLITS, OPTIONS), subject(), GridSearchCV)


def test_training_scores_of_a_fit_that_nearly_interpolates() -> None:
    """A mean of 1e5 is rounded to 1e-11; times large coefficients, that is far more than the residual."""
    recipe = Recipe(11, 14, 1908, twists=("offset columns", "duplicate column"), target="two outputs")
    options = Options(("r2", "neg_median_absolute_error"), "list", return_train_score=True)
    estimator = make_pipeline(StandardScaler(), Ridge())
    grid = {"ridge__alpha": [0.001, 1.0], "standardscaler__with_std": [False, True]}
    problem = Problem(LEAST_SQUARES, estimator, grid, recipe, Splits("int", 2, 232), options)
    check(problem, subject(), GridSearchCV)


@pytest.mark.parametrize("seed", range(4))
def test_ties_that_float32_cannot_decide(seed: int) -> None:
    """Sixteen training rows, four along each axis. The judge would let the truth pass, but it is a guess."""
    recipe = Recipe(24, 4, seed, base="near ties", dtype="float32")
    grid = {"pca__n_components": [1, 2, 3], "ridge__alpha": [1e-3]}
    problem = Problem(
        LEAST_SQUARES, make_pipeline(PCA(), Ridge()), grid, recipe, Splits("one split", 3, 0), OPTIONS
    )
    theirs, ours = check(problem, subject(), GridSearchCV)
    np.testing.assert_allclose(ours.results["split0_test_r2"], theirs.results["split0_test_r2"], atol=1e-6)


@pytest.mark.parametrize("recipe", _forms().values(), ids=_forms())
def test_each_form_of_data(recipe: Recipe) -> None:
    check(_problem("affine", recipe, SPLITS, OPTIONS), subject(), GridSearchCV)


@pytest.mark.invariant("Scores, ranks, NaN, errors and warnings are scikit-learn's")
@pytest.mark.parametrize("weights", [None, "zeros"])
@pytest.mark.parametrize("kind", [*SPLITTERS, *LISTS])
def test_each_kind_of_splits(kind: str, weights: str | None) -> None:
    problem = _problem("affine", replace(PLAIN, n=12, weights=weights), Splits(kind, 3, 0), OPTIONS)
    check(problem, subject(), GridSearchCV)


@pytest.mark.parametrize("kind", SPLITTERS)
def test_groups_that_a_splitter_does_not_need(kind: str) -> None:
    problem = _problem("ridge", PLAIN, Splits(kind, 3, 0), replace(OPTIONS, needless_groups=True))
    check(problem, subject(), GridSearchCV)


@pytest.mark.invariant("Scores, ranks, NaN, errors and warnings are scikit-learn's")
@pytest.mark.parametrize("scorer", [None, *REGRESSION_SCORERS, "mean_prediction", "two_numbers"])
@pytest.mark.parametrize("target", ["two outputs", "r2 near one"])
def test_each_scorer(scorer: str | None, target: str) -> None:
    own = scorer in ("mean_prediction", "two_numbers")
    options = Options(
        () if scorer is None else (scorer,), "callable" if own else "one", return_train_score=True
    )
    check(_problem("affine", replace(PLAIN, target=target), SPLITS, options), subject(), GridSearchCV)


@pytest.mark.parametrize("error_score", [float("nan"), -7, "raise"])
@pytest.mark.parametrize("refit", ["yes", "no", "callable", "missing"])
def test_each_way_to_fail(error_score: Any, refit: Any) -> None:
    """Three columns cannot be chosen from where the training parts have two rows, nor can -1 be a penalty."""
    options = replace(OPTIONS, error_score=error_score, refit=refit)
    problem = Problem(
        LEAST_SQUARES,
        make_pipeline(StandardScaler(), PCA(), Ridge()),
        {"pca__n_components": [1, 3, 9], "ridge__alpha": [1.0, -1.0]},
        PLAIN,
        Splits("TimeSeriesSplit", 4, 0),
        options,
    )
    check(problem, subject(), GridSearchCV)


@pytest.mark.invariant("The fuzzer reaches the shared path and catches wrong searches")
@pytest.mark.skipif(subject() is GridSearchCV, reason="scikit-learn shares nothing")
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("scorer", [None, *REGRESSION_SCORERS])
def test_fuzzer_reaches_the_shared_path(scorer: str | None, pipeline: str) -> None:
    """Without this, a family that never serves would pass every comparison."""
    options = Options(() if scorer is None else (scorer,), return_train_score=True)
    outcome = _problem(pipeline, PLAIN, SPLITS, options).run(subject())
    assert outcome.search.report_.fits_done == 0
    assert outcome.search.report_.fits_shared > 0
