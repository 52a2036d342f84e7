"""One example: an estimator, a grid, data, splits and options; and what a search makes of it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import check_cv
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from tests.differential._options import Options
from tests.differential._options import options as search_options
from tests.differential._recipe import Data, Recipe, recipes
from tests.differential._register import Case, Grid
from tests.differential._splits import Splits, splits


@dataclass(frozen=True)
class Outcome:
    """What a search left behind: its results or its exception, and its warnings."""

    results: dict[str, Any] | None = None
    error: BaseException | None = None
    warned: frozenset[str] = frozenset()
    attributes: dict[str, Any] = field(default_factory=dict)
    search: Any = None


@dataclass(frozen=True)
class Problem:
    """Everything a search needs, without the class of search."""

    case: Case
    estimator: Any
    grid: Grid
    recipe: Recipe
    splits: Splits
    options: Options

    def run(self, search_class: Any) -> Outcome:
        """Fit a search of this class on fresh copies of everything."""
        data = self.recipe.build()
        return self.attempt(search_class, self.grid, data, self.splits.make(self.recipe.n))

    def attempt(
        self,
        search_class: Any,
        grid: Grid,
        data: Data,
        cv: Any,
        wrap: Callable[[Any], Any] = lambda estimator: estimator,
        **changes: Any,
    ) -> Outcome:
        """Fit a search of this class on what is given; exceptions and warnings are caught and kept."""
        with (
            config_context(enable_metadata_routing=self.options.routing),
            warnings.catch_warnings(record=True) as caught,
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("always")
            try:
                estimator = wrap(self._requesting(clone(self.estimator)))
                search = search_class(estimator, grid, cv=cv, **(self._parameters(search_class) | changes))
                search.fit(data.X, data.y, **self.fit_params(data, cv))
            except Exception as error:  # whatever scikit-learn raises, ours has to raise
                return Outcome(error=error, warned=_digest(caught))
            return Outcome(search.cv_results_, None, _digest(caught), _attributes(search, data), search)

    def fit_params(self, data: Data, cv: Any) -> dict[str, Any]:
        """Keyword arguments of `fit`: groups, and weights for the steps that are to have them."""
        grouped = (self.splits.needs_groups or self.options.needless_groups) and hasattr(cv, "split")
        params = {"groups": data.groups} if grouped else {}
        if data.weights is None:
            return params
        if self.options.routing:
            return {**params, "sample_weight": data.weights}
        paths = (path for path, _ in self._weighted_steps(self.estimator))
        names = (f"{path}__sample_weight".removeprefix("__") for path in paths)
        return {**params, **dict.fromkeys(names, data.weights)}

    def pairs(self, data: Data) -> list[tuple[np.ndarray, np.ndarray]]:
        """The splits as arrays of row numbers."""
        cv = check_cv(self.splits.make(self.recipe.n), data.y, classifier=is_classifier(self.estimator))
        groups = data.groups if self.splits.needs_groups else None
        pairs = cv.split(data.X, data.y, groups)
        return [(_rows(train), _rows(test)) for train, test in pairs]

    def _parameters(self, search_class: Any) -> dict[str, Any]:
        options = self.options
        parameters = {
            "scoring": options.scoring(),
            "refit": options.refit_parameter(),
            "return_train_score": options.return_train_score,
            "error_score": options.error_score,
        }
        if "sharing" in inspect.signature(search_class).parameters:
            parameters["sharing"] = options.sharing
        return parameters

    def _requesting(self, estimator: Any) -> Any:
        """Under metadata routing, let each step ask for weights or not, in `fit` and in `score`."""
        if not self.options.routing:
            return estimator
        chosen = [id(step) for _, step in self._weighted_steps(estimator)]
        for _, step in weighable_steps(estimator):
            step.set_fit_request(sample_weight=id(step) in chosen)
            if hasattr(step, "set_score_request"):
                step.set_score_request(sample_weight=self.options.requests(0))
        return estimator

    def _weighted_steps(self, estimator: Any) -> list[tuple[str, Any]]:
        steps = list(weighable_steps(estimator))
        return {"all": steps, "last": steps[-1:], "first": steps[:1]}[self.options.weighted]

    def __str__(self) -> str:
        return (
            f"family     {self.case.name}\nestimator  {self.estimator!r}\ngrid       {self.grid!r}\n"
            f"data       {self.recipe!r}\nsplits     {self.splits!r}\noptions    {self.options!r}"
        )


@st.composite
def problems(draw: st.DrawFn, case: Case) -> Problem:
    """A problem of this family."""
    recipe = draw(recipes(case.targets))
    estimator, grid = case.draw_search(draw, recipe)
    drawn = draw(splits("two classes" in case.targets, case.small_sets))
    options = draw(search_options(case.scorers, weighted=recipe.weights is not None))
    return Problem(case, estimator, grid, recipe, drawn, options)


def weighable_steps(estimator: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The steps, each with its path, whose `fit` takes `sample_weight`."""
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            yield from weighable_steps(step, f"{prefix}__{name}" if prefix else name)
    elif isinstance(estimator, TransformedTargetRegressor | MultiOutputRegressor):
        held = estimator.get_params(deep=False)
        yield from weighable_steps(held.get("regressor", held.get("estimator")), prefix)
    elif hasattr(estimator, "fit") and has_fit_parameter(estimator, "sample_weight"):
        yield prefix, estimator


def _rows(indices: Any) -> np.ndarray:
    indices = np.asarray(indices)
    return np.flatnonzero(indices) if indices.dtype == bool else indices


COMPARED_WARNINGS = (
    "FitFailedWarning",
    "UndefinedMetricWarning",
    "DataConversionWarning",
    "FutureWarning",
    "DeprecationWarning",
    "LinAlgWarning",
)


def _digest(caught: list[warnings.WarningMessage]) -> frozenset[str]:
    """Kinds of the warnings that do not depend on rounding; of plain UserWarnings how the message starts."""
    kinds = {w.category.__name__ for w in caught} & set(COMPARED_WARNINGS)
    user = {f"UserWarning: {str(w.message)[:24]}" for w in caught if w.category is UserWarning}
    return frozenset(kinds | user)


def _attributes(search: Any, data: Data) -> dict[str, Any]:
    """What a fitted search shows, and what its refitted estimator predicts."""
    names = ("n_splits_", "multimetric_", "n_features_in_", "feature_names_in_", "classes_", "best_index_")
    found = {name: getattr(search, name) for name in names if hasattr(search, name)}
    found["scorer_"] = type(search.scorer_).__name__
    if hasattr(search, "best_estimator_"):
        found["best_estimator_"] = repr(search.best_estimator_)
        try:
            found["predictions"] = np.asarray(search.predict(data.X))
        except Exception as error:  # some estimators fit what they cannot predict: a mean of texts
            found["predictions"] = type(error).__name__
    return found
