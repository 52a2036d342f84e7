"""The strategy of a family's problems."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.differential._options import options
from tests.differential._problem import Problem
from tests.differential._recipe import recipes
from tests.differential._register import Case
from tests.differential._splits import splits


@st.composite
def problems(draw: st.DrawFn, case: Case) -> Problem:
    """A problem of this family."""
    recipe = draw(recipes(case.targets))
    estimator, grid = case.draw_search(draw, recipe)
    return Problem(
        case=case,
        estimator=estimator,
        grid=grid,
        recipe=recipe,
        splits=draw(splits(classes="two classes" in case.targets)),
        options=draw(options(case.scorers, weighted=recipe.weights is not None)),
    )
