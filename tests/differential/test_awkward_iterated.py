"""Each awkward thing the recipes know, once with each of a few models that iterate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from tests.differential._compare import check
from tests.differential._options import Options
from tests.differential._problem import Problem
from tests.differential._profile import THOROUGH
from tests.differential._recipe import BASES, CLASSES, FORMS, TWISTS, WEIGHTS, Recipe
from tests.differential._register import Case, Grid, case_named
from tests.differential._splits import LISTS, SPLITTERS, Splits
from tests.differential._subject import subject

from .families.iterated import DEVIANCES, POSITIVE, SCORERS

# Nothing stops before the optimum, so that scores agree to many digits.
TO_THE_END: dict[str, Any] = {"tol": 1e-9, "max_iter": 10_000}
SPLITS = Splits("shuffled KFold", 3, 0)


@dataclass(frozen=True)
class Model:
    """A search, and the data and scorers that suit it."""

    case: Case
    estimator: Any
    grid: Grid
    target: str
    scorers: tuple[str, ...]

    def problem(self, splits: Splits = SPLITS, scorers: tuple[str, ...] = (), **changes: Any) -> Problem:
        """The search on plain data with some changes."""
        recipe = replace(Recipe(n=24, p=4, seed=1, target=self.target), **changes)
        options = Options(scorers or self.scorers, "list", return_train_score=True, sharing="optimum")
        return Problem(self.case, self.estimator, self.grid, recipe, splits, options)


CLASSIFIES, COUNTS = case_named("steps, logistic regression"), case_named("steps, generalised linear model")
MODELS = {
    "logistic": Model(
        CLASSIFIES,
        LogisticRegression(**TO_THE_END),
        {"C": [0.01, 10.0]},
        "two classes",
        ("neg_log_loss", "accuracy"),
    ),
    "multinomial": Model(
        CLASSIFIES,
        make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", **TO_THE_END)),
        {"logisticregression__C": [0.1, 1.0]},
        "named classes",
        ("neg_log_loss", "balanced_accuracy"),
    ),
    "poisson": Model(
        COUNTS,
        make_pipeline(StandardScaler(), PoissonRegressor(**TO_THE_END)),
        {"poissonregressor__alpha": [0.01, 10.0]},
        "zero counts",
        ("neg_mean_absolute_error", "neg_mean_poisson_deviance"),
    ),
}


def _data() -> dict[str, dict[str, Any]]:
    """What the arithmetic meets: each with every model."""
    found: dict[str, dict[str, Any]] = {f"twist-{name}": {"twists": (name,)} for name in TWISTS}
    found |= {f"base-{name}": {"base": name} for name in BASES}
    found |= {f"weights-{name}": {"weights": name} for name in WEIGHTS}
    shapes = {"wide": {"n": 14, "p": 20}, "one column": {"p": 1}}
    return found | shapes | {"float32": {"dtype": "float32"}, "int32": {"dtype": "int32"}}


def _in_turn(names: Any) -> list[Any]:
    """All in the thorough profile; else every eighth, since each takes a second route of its own."""
    return list(names)[:: 1 if THOROUGH else 8]


def _each_with_a_model() -> list[Any]:
    """All models in the thorough profile; else one after the other, with every third kind of data."""
    found = []
    for i, (name, changes) in enumerate([*_data().items()][:: 1 if THOROUGH else 3]):
        models = list(MODELS) if THOROUGH else [list(MODELS)[i % len(MODELS)]]
        found += [pytest.param(changes, model, id=f"{name}-{model}") for model in models]
    return found


@pytest.mark.parametrize(("changes", "model"), _each_with_a_model())
def test_each_kind_of_data(changes: dict[str, Any], model: str) -> None:
    if model == "logistic" and changes.get("twists") == ("large",):
        pytest.skip("a gradient by columns of 1e9, without a scaler, is above any tol until it is rounding")
    check(MODELS[model].problem(**changes), subject(), GridSearchCV)


@pytest.mark.parametrize("target", CLASSES)
def test_each_kind_of_classes(target: str) -> None:
    check(MODELS["logistic"].problem(target=target), subject(), GridSearchCV)


@pytest.mark.parametrize("target", POSITIVE)
def test_each_kind_of_positive_target(target: str) -> None:
    check(MODELS["poisson"].problem(target=target), subject(), GridSearchCV)


@pytest.mark.parametrize("form", _in_turn(FORMS))
def test_each_form_of_data(form: str) -> None:
    check(MODELS["logistic"].problem(form=form), subject(), GridSearchCV)


@pytest.mark.parametrize("kind", _in_turn([*SPLITTERS, *LISTS]))
def test_each_kind_of_splits(kind: str) -> None:
    problem = MODELS["multinomial"].problem(Splits(kind, 3, 0), n=30, weights="random")
    check(problem, subject(), GridSearchCV)


@pytest.mark.parametrize("target", ["two classes", "named classes"])
@pytest.mark.parametrize("scorer", _in_turn(dict.fromkeys(SCORERS)))
def test_each_scorer_of_classes(scorer: str, target: str) -> None:
    check(MODELS["logistic"].problem(scorers=(scorer,), target=target), subject(), GridSearchCV)


@pytest.mark.parametrize("scorer", DEVIANCES)
def test_each_scorer_of_positive_targets(scorer: str) -> None:
    check(MODELS["poisson"].problem(scorers=(scorer,)), subject(), GridSearchCV)


def _machine(
    intercept: bool, splits: Splits, scorers: tuple[str, ...], recipe: Recipe, sharing: str = "optimum"
) -> Problem:
    estimator = LinearSVC(fit_intercept=intercept, dual=False, tol=1e-6)
    options = Options(scorers, "list", return_train_score=True, sharing=sharing)
    return Problem(case_named("linear svc"), estimator, {"C": [1e-3]}, recipe, splits, options)


def test_columns_so_small_that_liblinear_stops_where_it_starts() -> None:
    """The optimum is about ``2 C sum_i t_i x_i``; scikit-learn answers 0, the same for all rows."""
    recipe = Recipe(24, 4, 1, twists=("small",), target="two classes")
    theirs, ours = check(_machine(False, SPLITS, ("roc_auc",), recipe), subject(), GridSearchCV)
    assert theirs.results["mean_train_roc_auc"] == 0.5
    assert subject() is GridSearchCV or ours.results["mean_train_roc_auc"] > 0.9
    _, ours = check(_machine(False, SPLITS, ("roc_auc",), recipe, "auto"), subject(), GridSearchCV)
    assert ours.results["mean_train_roc_auc"] == 0.5


def test_warnings_of_the_labels_that_are_predicted() -> None:
    """scikit-learn stops at 0 here too, and predicts the first class only, which each test part holds."""
    recipe = Recipe(13, 14, 596, twists=("scaled duplicate", "small"), target="named classes")
    problem = _machine(False, Splits("overlapping", 4, 130), ("balanced_accuracy",), recipe)
    check(problem, subject(), GridSearchCV)


@pytest.mark.skipif(subject() is GridSearchCV, reason="scikit-learn shares nothing")
@pytest.mark.parametrize("weights", [None, "random"])
@pytest.mark.parametrize("model", MODELS)
def test_fuzzer_reaches_the_shared_path(model: str, weights: str | None) -> None:
    """Without this, a family that never serves would pass every comparison."""
    problem = MODELS[model].problem(weights=weights)
    problem = replace(problem, splits=Splits("int", 3, 0), options=replace(problem.options, weighted="last"))
    report = problem.run(subject()).search.report_
    assert report.fits_shared > 0
    assert report.fits_done == 0
