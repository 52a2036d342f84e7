"""How many columns a transformer makes, as far as its parameters tell."""

from collections.abc import Callable
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from manyfit._twins import twin_of
from manyfit.model_selection._parts import Part, is_left_out, parts_of


def n_columns(step: Any, p: int | None) -> int | None:
    """Columns that an unfitted transformer makes of `p`; None where only a fit tells, or it is unknown."""
    if is_left_out(step):
        return p
    if isinstance(step, Pipeline):
        for _, one in step.steps:
            p = n_columns(one, p)
        return p
    parts = parts_of(step, p)
    if parts is not None:
        return _side_by_side(parts, p)
    rule = _RULES.get(twin_of(type(step)).__name__)
    if p is None or rule is None or not type(step).__module__.startswith(("sklearn.", "manyfit.")):
        return None
    try:
        return rule(step, p)
    except (TypeError, ValueError):  # of a parameter that a fit refuses
        return None


def _side_by_side(parts: list[Part], p: int | None) -> int | None:
    total = 0
    for part in parts:
        handed = p if not part.cut else None if part.columns is None else len(part.columns)
        width = n_columns(part.estimator, handed)
        if width is None:
            return None
        total += width
    return total


def _same(step: Any, p: int) -> int:
    return p


def _imputed(step: Any, p: int) -> int | None:
    return None if step.add_indicator else p  # a column without a value is left out, which only a fit tells


def _powers(step: Any, p: int) -> int:
    low, high = (0, step.degree) if np.ndim(step.degree) == 0 else step.degree
    more = 0 if step.interaction_only else 1  # with it a column may stand more than once in a product
    return sum(comb(p + more * (i - 1), i) for i in range(max(1, low), high + 1)) + int(step.include_bias)


def _components(step: Any, p: int) -> int | None:
    asked = step.n_components
    return p if asked is None else int(asked) if isinstance(asked, Integral) else None


def _best(step: Any, p: int) -> int:
    return p if step.k == "all" else min(step.k, p)


def _bins(step: Any, p: int) -> int | None:
    return p if step.encode == "ordinal" else None


_RULES: dict[str, Callable[[Any, int], int | None]] = {
    **dict.fromkeys(
        (
            "Binarizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "OrdinalEncoder", "PowerTransformer",
            "QuantileTransformer", "RobustScaler", "StandardScaler",
        ),
        _same,
    ),
    **dict.fromkeys(("IncrementalPCA", "NMF", "PCA", "TruncatedSVD"), _components),
    "KBinsDiscretizer": _bins,
    "PolynomialFeatures": _powers,
    "SelectKBest": _best,
    "SimpleImputer": _imputed,
}  # fmt: skip
