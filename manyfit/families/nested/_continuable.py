"""Which fits of ensembles may go on from a fit with fewer members, and why others may not."""

from __future__ import annotations

import numbers
from collections.abc import Collection
from typing import Any

from sklearn.pipeline import Pipeline

from manyfit._compat import has_callbacks
from manyfit.introspection.class_names import public_name

# The parameter that says how many members an ensemble has. Their ``warm_start`` draws the random numbers that
# a longer fit would have drawn, and adds the same numbers in the same order. Not GradientBoosting: its fits
# add products in NumPy, its predictions in compiled code, where a processor may round only once.
_SIZES = {
    "sklearn.ensemble.ExtraTreesClassifier": "n_estimators",
    "sklearn.ensemble.ExtraTreesRegressor": "n_estimators",
    "sklearn.ensemble.HistGradientBoostingClassifier": "max_iter",
    "sklearn.ensemble.HistGradientBoostingRegressor": "max_iter",
    "sklearn.ensemble.RandomForestClassifier": "n_estimators",
    "sklearn.ensemble.RandomForestRegressor": "n_estimators",
}
_ROUNDED = ("sklearn.ensemble.GradientBoostingClassifier", "sklearn.ensemble.GradientBoostingRegressor")
# From so many rows on, ``early_stopping="auto"`` stops.
_MOST_WITHOUT_STOPPING = 10_000


def size_of(model: Any) -> str:
    """The parameter that says how many members an ensemble has; empty for what never goes on."""
    return _SIZES.get(public_name(type(model)), "")


def why_rounds_start_anew(estimator: Any, parameter: str) -> str:
    """Why no fit may go on from one with a smaller value of a parameter; empty if some may."""
    step, _, name = parameter.rpartition("__")
    if type(estimator) is Pipeline and estimator.steps[-1][0] == step:
        estimator, step = estimator.steps[-1][1], ""
    if public_name(type(estimator)) in _ROUNDED and not step:
        return why_anew(estimator, 0)
    if step or size_of(estimator) != name:
        return (
            f"{parameter} of {type(estimator).__name__} is no number of trees or iterations that a fit may "
            "add to, as n_estimators of random forests and extra trees, and max_iter of HistGradientBoosting"
        )
    return ""


def why_anew(model: Any, n_rows: int, params: Collection[str] = ()) -> str:
    """Why a fit on so many rows may not go on from a shorter one; empty if both are the same to the bit.

    `params`: names of parameters of ``fit``.
    """
    if type(model) is Pipeline and len(model.steps) > 1:
        if params:
            return "steps of the pipeline get parameters of fit"
        if any(one is not None for one in (model.memory, model.transform_input, model.verbose or None)):
            return "the pipeline has memory, transform_input or verbose"
        if has_callbacks(model):
            return "the pipeline has callbacks"
        return why_anew(model.steps[-1][1], n_rows)
    name = type(model).__name__
    if public_name(type(model)) in _ROUNDED:
        return f"a longer fit of {name} rounds its sums in another way"
    if not size_of(model):
        return f"fits of {name} do not go on"
    for option in ("warm_start", "verbose"):
        if getattr(model, option):
            return f"{option}={getattr(model, option)!r}"
    if not isinstance(model.random_state, numbers.Integral):
        return "random_state is not an integer, so that each fit draws other numbers"
    return _why_other_members(model, n_rows)


def _why_other_members(model: Any, n_rows: int) -> str:
    """Why the members of a longer fit would not begin with those of a shorter one, without a warning."""
    if size_of(model) == "max_iter":
        stops = model.early_stopping
        may_go_on = stops is False or (stops == "auto" and n_rows <= _MOST_WITHOUT_STOPPING)
        return "" if may_go_on else f"early_stopping={stops!r} may end a shorter fit"
    if model.oob_score:
        return f"oob_score={model.oob_score!r} is a score of all trees"
    weights = getattr(model, "class_weight", None)
    return f"class_weight={weights!r} warns of warm_start" if isinstance(weights, str) else ""
