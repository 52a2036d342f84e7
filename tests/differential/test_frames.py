"""Searches over frames, behind steps that read columns, against scikit-learn."""

from __future__ import annotations

import copy
import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, check_cv

from tests.differential._compare import _error_differences, _failures, _layout_differences
from tests.differential._frames import FrameProblem, frame_problems
from tests.differential._problem import Outcome
from tests.differential._profile import PROFILE, THOROUGH
from tests.differential._subject import subject

pytestmark = [pytest.mark.timeout(0)] if THOROUGH else []  # as long as it takes

# Of what scikit-learn's own scores differ by when training rows come in another order.
SCATTER_SLACK = 8.0
RTOL = {"ridge": 1e-8, "logistic": 1e-6}
SINGLE = 2e-6  # scikit-learn scales columns of float32 in float32


def searched(problem: FrameProblem, search_class: Any, order: int | None = None, **params: Any) -> Outcome:
    """What a search of this class makes of a problem; `order`: the seed of another order of training rows."""
    X, y, weights = problem.recipe.build()
    cv = problem.splits.make(problem.recipe.n)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            groups = np.arange(len(y)) % 4
            if order is not None:
                rng = np.random.default_rng(order)
                pairs = check_cv(cv, y, classifier=problem.recipe.classes > 0).split(X, y, groups)
                cv = [(rng.permutation(train), test) for train, test in pairs]
            search = search_class(clone(problem.estimator), problem.grid, cv=cv, **problem.options, **params)
            given = {"groups": groups} if problem.splits.needs_groups else {}
            if weights is not None:
                given["last__sample_weight"] = weights
            search.fit(X, y, **given)
        except Exception as error:  # whatever scikit-learn raises, ours has to raise
            return Outcome(error=error, warned=told(caught))
        return Outcome(search.cv_results_, warned=told(caught), search=search)


def told(caught: list[warnings.WarningMessage]) -> frozenset[str]:
    """Kinds and beginnings of warnings."""
    return frozenset(f"{w.category.__name__}: {str(w.message)[:40]}" for w in caught)


def score_differences(problem: FrameProblem, theirs: Any, ours: Any, rtol: float) -> list[str]:
    """Scores that differ by more than rounding explains."""
    found, scatter = [], None
    for key in (key for key in theirs if key.startswith("split")):
        a, b = theirs[key], ours[key]
        size = np.maximum(np.abs(a), 1.0 if key.endswith("r2") else 1e-3)
        far = ~(np.abs(a - b) <= rtol * size) & ~(np.isnan(a) & np.isnan(b))
        if not far.any():
            continue
        if scatter is None:
            scatter = [searched(problem, GridSearchCV, order).results for order in range(4)]
        spread = np.max([np.abs(one[key] - a) for one in scatter if one], axis=0, initial=0.0)
        if (far & ~(np.abs(a - b) <= SCATTER_SLACK * spread)).any():
            found.append(f"{key}: {a} from scikit-learn, {b} from ours, scatter {spread}")
    return found


def differences(problem: FrameProblem, model: str, **sharing: Any) -> list[str]:
    """Everything in which our answer is not scikit-learn's; empty if nothing."""
    theirs = searched(problem, GridSearchCV)
    # Where scikit-learn does not converge, the optimum has other scores.
    assume(not any(one.startswith("ConvergenceWarning") for one in theirs.warned))
    ours = searched(copy.deepcopy(problem), subject(), **sharing)
    if theirs.error is not None or ours.error is not None:
        found = list(_error_differences(theirs, ours))
    else:
        found = list(_layout_differences(theirs.results, ours.results))
        rtol = SINGLE if "float32" in problem.recipe.numbers else RTOL[model]
        found += found or score_differences(problem, theirs.results, ours.results, rtol)
    if not any(re.match("FitFailedWarning|UserWarning: Scoring failed", one) for one in theirs.warned):
        found += _failures(ours)
    if theirs.warned != ours.warned:
        found.append(f"warnings: {sorted(theirs.warned)} from scikit-learn, {sorted(ours.warned)} from ours")
    return found


@pytest.mark.invariant("Scores, ranks, NaN, errors and warnings are scikit-learn's")
@pytest.mark.parametrize("model", ["ridge", "logistic"])
def test_columns_of_frames(model: str) -> None:
    sharing = {} if subject() is GridSearchCV else {"sharing": "optimum"}

    @PROFILE
    @given(st.data())
    def run(data: st.DataObject) -> None:
        problem = data.draw(frame_problems(model), label="problem")
        found = differences(problem, model, **sharing)
        assert not found, "\n".join([str(problem), *found])

    run()
