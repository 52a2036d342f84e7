"""The fuzzer itself: wrong searches are caught, and scikit-learn's own is not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR

from manyfit.model_selection import Report
from tests._covering import spread
from tests.differential._compare import check
from tests.differential._options import Options
from tests.differential._problem import Problem, problems
from tests.differential._recipe import Recipe
from tests.differential._register import case_named
from tests.differential._splits import Splits

PLAIN = Problem(
    case=case_named("scaler, ridge"),
    estimator=make_pipeline(StandardScaler(), Ridge()),
    grid={"ridge__alpha": [1e-3, 10.0]},
    recipe=Recipe(n=20, p=3, seed=1),
    splits=Splits("KFold", 3, 0),
    options=Options(),
)


class SlightlyOff(GridSearchCV):
    """Scores off by 1e-7, with means and ranks that follow from them."""

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> Any:
        for result in out:
            scores = result["test_scores"]
            several = isinstance(scores, dict)
            result["test_scores"] = {k: v + 1e-7 for k, v in scores.items()} if several else scores + 1e-7
        return super()._format_results(candidate_params, n_splits, out, more_results)


def changing(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A search whose `cv_results_` a function changes."""

    class Changing(GridSearchCV):
        def _format_results(self, *args: Any, **kwargs: Any) -> Any:
            return change(super()._format_results(*args, **kwargs))

    return Changing


def each(start: str, change: Callable[[Any], Any]) -> Any:
    """A search that changes the columns of `cv_results_` whose names start so."""
    return changing(lambda results: {k: change(v) if k.startswith(start) else v for k, v in results.items()})


LosesNaN = each("split", np.nan_to_num)
RanksBackwards = each("rank", lambda ranks: ranks.max() + 1 - ranks)
OrdersKeys = changing(lambda results: dict(sorted(results.items())))
Narrows = each("split", lambda scores: scores.astype(np.float32))


class IgnoresWeights(GridSearchCV):
    """Weights are accepted and not used."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        return super().fit(X, y, **{k: v for k, v in params.items() if not k.endswith("sample_weight")})


class WeighsEveryScore(GridSearchCV):
    """All scorers are given the weights if one asks for them."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        scorers = self.scoring.values() if isinstance(self.scoring, dict) else ()
        requests = [s.get_metadata_routing().score.requests["sample_weight"] for s in scorers]
        for scorer in scorers:
            scorer.set_score_request(sample_weight=any(requests))
        return super().fit(X, y, **params)


class KeepsQuiet(GridSearchCV):
    """No warning gets out."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().fit(X, y, **params)


class RaisesAnother(GridSearchCV):
    """Exceptions of another type."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        try:
            return super().fit(X, y, **params)
        except ValueError as error:
            raise RuntimeError(str(error)) from error


class DropsRepeatedRows(GridSearchCV):
    """Each row trains once, however often the splitter names it."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        if isinstance(self.cv, list):
            self.cv = [(np.unique(train), test) for train, test in self.cv]
        return super().fit(X, y, **params)


class FlattensColumns(GridSearchCV):
    """Takes a column of small variance for a constant one."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        if isinstance(X, np.ndarray) and X.dtype.kind == "f":
            X = np.where(X.std(axis=0) < 1e-6, X.mean(axis=0), X)
        return super().fit(X, y, **params)


class RefitsOnHalf(GridSearchCV):
    """The right scores, and an estimator that has not seen all rows."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        super().fit(X, y, **params)
        if isinstance(X, np.ndarray) and hasattr(self, "best_estimator_") and not params:
            self.best_estimator_.fit(X[::2], y[::2])
        return self


class FailsToShare(GridSearchCV):
    """The right scores, since scikit-learn's own fits stood in for shared work that raised."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        self.report_ = Report(left_to_sklearn={"shared work failed (AssertionError)": 1})
        return super().fit(X, y, **params)


passed: set[str] = set()


def _with(problem: Problem, **changes: Any) -> Problem:
    """The problem with a few of its own, its recipe's and its options' attributes changed."""
    recipe = {k: changes.pop(k) for k in [*changes] if hasattr(problem.recipe, k)}
    given = changes.pop("options", problem.options)
    options = {k: changes.pop(k) for k in [*changes] if hasattr(problem.options, k)}
    return replace(
        problem,
        recipe=replace(problem.recipe, **recipe),
        options=replace(given, **options),
        **changes,
    )


ROUTED = Options(("r2", "neg_mean_squared_error"), form="dict", routing=True, weighted_scores=(True, False))
COLLINEAR = {"twists": ("duplicate column",), "estimator": Ridge(), "grid": {"alpha": [1e-8]}}


WRONG_SEARCHES = [
    (SlightlyOff, {}, "split0_test_score.*truth"),
    (SlightlyOff, {"dtype": "float32", "scorers": ("neg_mean_squared_error",)}, None),
    (
        SlightlyOff,
        {"estimator": Ridge(), "grid": {"alpha": [1.0]}, "twists": ("offset 1e5",)},
        "split0_test",
    ),
    (SlightlyOff, {"estimator": Lasso(), "grid": {"alpha": [0.1]}}, "no better route"),
    (LosesNaN, {"grid": {"ridge__alpha": [1.0, -1.0]}}, "not finite in one of the two"),
    (IgnoresWeights, {"weights": "random"}, "split0_test"),
    (IgnoresWeights, {"weights": "random", "routing": True, "scorers": ("r2",)}, "split0_test"),
    (WeighsEveryScore, {"weights": "random", "options": ROUTED}, "split0_test_m1"),
    (RanksBackwards, {}, "rank_test"),
    (OrdersKeys, {}, "keys of cv_results_"),
    (Narrows, {}, "of float64 from scikit-learn, ndarray of float32"),
    (KeepsQuiet, {"splits": Splits("LeaveOneOut", 3, 0), "n": 10}, "warnings: .*Undefined"),
    (KeepsQuiet, {"dtype": "float32", **COLLINEAR}, "warnings: .*LinAlgWarning"),
    (RaisesAnother, {"target_form": "short"}, "exception: ValueError.*RuntimeError"),
    (DropsRepeatedRows, {"splits": Splits("bootstrap", 3, 0)}, "split0_test"),
    (FlattensColumns, {"twists": ("small",)}, "split0_test"),
    (RefitsOnHalf, {}, "predictions: "),
    (FailsToShare, {}, "shared work failed"),
]


@pytest.mark.invariant("The fuzzer reaches the shared path and catches wrong searches")
@pytest.mark.parametrize(("wrong", "changes", "told"), spread(WRONG_SEARCHES, 10))
def test_wrong_search_is_caught(wrong: Any, changes: dict[str, Any], told: str | None) -> None:
    problem = _with(PLAIN, **changes)
    if str(problem) not in passed:  # scikit-learn's own search passes
        check(problem, GridSearchCV, GridSearchCV)
        passed.add(str(problem))
    if told is None:  # below what float32 can tell
        check(problem, wrong, GridSearchCV)
        return
    with pytest.raises(AssertionError, match=told):
        check(problem, wrong, GridSearchCV)


def test_random_problems_catch_an_error_of_1e_7() -> None:
    @settings(
        max_examples=30,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(problems(PLAIN.case))
    def run(problem: Problem) -> None:
        check(problem, SlightlyOff, GridSearchCV)

    with pytest.raises(AssertionError, match="split0_test"):
        run()


def _solved_to(tol: float) -> Any:
    class SolvedTo(GridSearchCV):
        """Another tolerance than the user's."""

        def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
            self.estimator.set_params(tol=tol, max_iter=10_000)
            return super().fit(X, y, **params)

    return SolvedTo


ITERATES = _with(
    PLAIN,
    case=replace(PLAIN.case, result="converged", tight={"tol": 1e-10, "max_iter": 10_000}, tolerance=1e-6),
    estimator=LogisticRegression(tol=1e-4),
    grid={"C": [1.0, 100.0]},
    target="two classes",
    scorers=("neg_log_loss",),  # smooth in the coefficients
    refit="no",
)
MACHINE = _with(
    ITERATES,
    estimator=LinearSVR(loss="squared_epsilon_insensitive", dual=False, tol=1e-3),
    target="noisy",
    scorers=("r2",),
)


@pytest.mark.parametrize("problem", [ITERATES, MACHINE], ids=["logistic", "machine"])
def test_family_that_iterates_may_be_nearer_to_the_optimum(problem: Problem) -> None:
    check(problem, _solved_to(1e-8), GridSearchCV)


@pytest.mark.parametrize("problem", [ITERATES, MACHINE], ids=["logistic", "machine"])
def test_family_that_iterates_may_not_be_further_from_the_optimum(problem: Problem) -> None:
    with pytest.raises(AssertionError, match="truth"):
        check(problem, _solved_to(1.0), GridSearchCV)
