"""The strategy of a family's problems."""

from __future__ import annotations

from hypothesis import strategies as st

from ._options import options
from ._problem import Problem
from ._recipe import recipes
from ._register import Case
from ._splits import splits


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
