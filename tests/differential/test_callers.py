"""Selectors, permutation tests and nested searches against scikit-learn's, on random and awkward problems."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.feature_selection
import sklearn.model_selection
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manyfit.feature_selection
import manyfit.model_selection
from manyfit import exceptions
from tests.differential._profile import PROFILE, THOROUGH
from tests.differential._recipe import recipes

pytestmark = [pytest.mark.timeout(0)] if THOROUGH else []  # as long as it takes

MODELS = (
    Ridge(),
    Ridge(1e-6),
    Ridge(10.0, fit_intercept=False),
    LinearRegression(),
    make_pipeline(StandardScaler(), Ridge()),
    make_pipeline(StandardScaler(with_mean=False), LinearRegression()),
)
SCORERS = (None, "neg_mean_squared_error", "explained_variance", "neg_mean_absolute_error")
# Selectors compare what rounding leaves of scores. Of data far from zero, or nearly dependent, that is less.
RTOL = 1e-7

Call = Callable[[Any, Any, Any, Any, dict[str, Any]], tuple[Any, Any]]


def _sfs(selection: Any, model_selection: Any, X: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    found = selection.SequentialFeatureSelector(n_features_to_select=options.pop("k"), **options).fit(X, y)
    return found.support_, ()


def _rfecv(selection: Any, model_selection: Any, X: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    options.pop("k")
    options.pop("direction")
    found = selection.RFECV(**options).fit(X, y)
    return (found.support_, found.ranking_), list(found.cv_results_.values())


def _permuted(
    selection: Any, model_selection: Any, X: Any, y: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    options = {name: options[name] for name in ("estimator", "scoring", "cv")}
    score, scores, p = model_selection.permutation_test_score(
        X=X, y=y, n_permutations=8, random_state=0, **options
    )
    return p, (score, scores)


def _nested(selection: Any, model_selection: Any, X: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    model = options["estimator"]
    name = next((name for name in model.get_params() if name.endswith("alpha")), None)
    grid = {name: [1e-6, 1.0, 100.0]} if name else {}
    search = model_selection.GridSearchCV(model, grid, scoring=options["scoring"], cv=2)
    return (), model_selection.cross_val_score(search, X, y, cv=options["cv"])


def _outcome(call: Call, *arguments: Any, options: dict[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(*arguments, dict(options))
        except (exceptions.Unsupported, AssertionError):
            raise
        except Exception as error:  # whatever scikit-learn raises, ours has to raise
            return type(error)


@pytest.mark.invariant("Scores, ranks, NaN, errors and warnings are scikit-learn's")
@pytest.mark.parametrize(
    "call", [_sfs, _rfecv, _permuted, _nested], ids=["sfs", "rfecv", "permuted", "nested"]
)
def test_answers_are_those_of_scikit_learn(call: Call) -> None:
    @PROFILE
    @given(st.data())
    def run(data: st.DataObject) -> None:
        recipe = data.draw(recipes(), label="recipe")
        built = recipe.build()
        options = {
            "estimator": data.draw(st.sampled_from(MODELS), label="model"),
            "scoring": data.draw(st.sampled_from(SCORERS), label="scoring"),
            "cv": data.draw(st.sampled_from([2, 3]), label="cv"),
            "k": data.draw(st.sampled_from([1, 2, "auto"]), label="k"),
            "direction": data.draw(st.sampled_from(["forward", "backward"]), label="direction"),
        }
        theirs, ours = (
            _outcome(call, *modules, built.X, built.y, options=options)
            for modules in (
                (sklearn.feature_selection, sklearn.model_selection),
                (manyfit.feature_selection, manyfit.model_selection),
            )
        )
        if isinstance(theirs, type) or isinstance(ours, type):
            assert ours is theirs
            return
        assert np.array_equal(ours[0], theirs[0]), f"{ours[0]} is not {theirs[0]}"
        for one, expected in zip(ours[1], theirs[1], strict=True):
            one, expected = np.asarray(one, dtype=float), np.asarray(expected, dtype=float)
            np.testing.assert_allclose(one, expected, rtol=RTOL, atol=RTOL)

    run()
