"""Every registered family against scikit-learn, on random and awkward problems."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV

from tests.differential._compare import check
from tests.differential._problem import problems
from tests.differential._profile import PROFILE, THOROUGH
from tests.differential._register import Case, cases
from tests.differential._subject import subject

pytestmark = [pytest.mark.timeout(0)] if THOROUGH else []  # as long as it takes


# Each takes as long as ten others, which have the same families or steps.
DEAR = {
    "nested steps, tree",
    "column transformer, neighbours",
    "selected columns, tree",
    "scaler, pca, neighbours",
    "steps, elastic net",
    "ridge classifier, small sets",
    "neighbours, small sets",
}


def _often_or_thorough() -> list[Any]:
    return [
        pytest.param(
            case,
            id=case.name.replace(", ", "+").replace(" ", "-"),
            marks=pytest.mark.thorough if case.name in DEAR else (),
        )
        for case in cases()
    ]


@pytest.mark.invariant("Scores, ranks, NaN, errors and warnings are scikit-learn's")
@pytest.mark.parametrize("case", _often_or_thorough())
def test_answers_are_those_of_scikit_learn(case: Case) -> None:
    @PROFILE
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(data.draw(problems(case), label="problem"), subject(), GridSearchCV)

    run()
