"""The register of families: what the fuzzer draws, and how its answers are judged.

A family joins with one decorated function, which draws an estimator and a grid for data of a given recipe::

    @register("lasso", result="converged", tight={"tol": 1e-12, "max_iter": 100_000})
    def lasso(draw, recipe):
        return Lasso(), {"alpha": draw(st.lists(st.floats(1e-3, 1), min_size=1, max_size=4))}

in a module of ``families/`` that ``families/__init__.py`` imports. `scorers` names the scorers that suit and
`targets` the kinds of target (see ``_recipe.py``). An *exact* family is held to scikit-learn's numbers, and,
where the problem is ill conditioned, to be no further than scikit-learn from the solution in extended
precision (``_oracle.py``). A *converged* family is held to be no further than scikit-learn, plus
`tolerance`, from scikit-learn's own answer with the parameters `tight`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import strategies as st

from tests.differential._recipe import CLASSES, REGRESSION, Recipe

Grid = Mapping[str, Any] | list[Mapping[str, Any]]
DrawSearch = Callable[[st.DrawFn, Recipe], tuple[Any, Grid]]

REGRESSION_SCORERS = (
    "r2",
    "explained_variance",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "neg_max_error",
    "neg_median_absolute_error",
)
CLASS_SCORERS = ("accuracy", "f1_macro", "neg_log_loss", "roc_auc", "balanced_accuracy")


@dataclass(frozen=True)
class Case:
    """A registered family."""

    name: str
    draw_search: DrawSearch
    scorers: tuple[str, ...]
    targets: tuple[str, ...]
    result: Literal["exact", "converged"]
    tight: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-9
    small_sets: bool = False


_CASES: dict[str, Case] = {}


def register(
    name: str,
    *,
    classes: bool = False,
    scorers: tuple[str, ...] | None = None,
    targets: tuple[str, ...] | None = None,
    result: Literal["exact", "converged"] = "exact",
    tight: Mapping[str, Any] | None = None,
    tolerance: float | None = None,
    small_sets: bool = False,
) -> Callable[[DrawSearch], DrawSearch]:
    """Register the decorated function as a family; `classes` chooses the defaults for classifiers.

    `small_sets`: its splits are many, and each tests few rows.
    """

    def add(draw_search: DrawSearch) -> DrawSearch:
        if name in _CASES:
            raise ValueError(f"a family named {name!r} is registered already")
        _CASES[name] = Case(
            name,
            draw_search,
            scorers or (CLASS_SCORERS if classes else REGRESSION_SCORERS),
            targets or (CLASSES if classes else REGRESSION),
            result,
            tight or {},
            tolerance if tolerance is not None else (1e-9 if result == "exact" else 1e-4),
            small_sets,
        )
        return draw_search

    return add


def cases() -> list[Case]:
    """Every registered family."""
    from tests.differential import families  # noqa: F401  (registers them; imported here since they import this module)

    return list(_CASES.values())


def case_named(name: str) -> Case:
    """The family registered by this name."""
    return next(case for case in cases() if case.name == name)
