"""The output of an unfitted transformer, as far as its parameters show: columns, sparse or dense."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.composites import Child, children, composite_class, last_step

# Drop-in estimators with sparse output for numbers, unless `sparse_output` says otherwise.
_SPARSE = ("OneHotEncoder", "TfidfTransformer")


def parts_of(step: Any, p: int | None) -> list[Child] | None:
    """The parts of a ColumnTransformer or FeatureUnion that are not dropped; None for any other step.

    The input of `step`, which is not fitted, has `p` columns; None: not known. `columns` of a part are the
    numbers of those that it gets, as a tuple; None if only a fit tells.
    """
    try:
        return _parts(step, p)
    except (IndexError, TypeError, ValueError):  # of a list that a fit refuses
        return None


def _parts(step: Any, p: int | None) -> list[Child] | None:
    kind, parts = composite_class(step), children(step)
    every = None if p is None else tuple(range(p))
    if kind is FeatureUnion:
        columns = [every] * len(parts)
    elif kind is ColumnTransformer:
        *branches, _ = parts
        columns = [_columns_of(child.columns, p) for child in branches]
        named = set().union(*(read or () for read in columns))
        unread = None if every is None or None in columns else tuple(j for j in every if j not in named)
        columns.append(unread)
    else:
        return None
    parts = [part._replace(columns=read) for part, read in zip(parts, columns, strict=True)]
    dropped = [isinstance(part.estimator, str) and part.estimator == "drop" for part in parts]
    return [part for part, is_out in zip(parts, dropped, strict=True) if not is_out and part.columns != ()]


def _columns_of(spec: Any, p: int | None) -> tuple[int, ...] | None:
    """Positions of the columns of a part of a ColumnTransformer; None if only a fit finds them."""
    if p is None or callable(spec):
        return None
    try:
        return tuple(map(int, np.arange(p)[[int(spec)] if isinstance(spec, Integral) else spec]))
    except (IndexError, TypeError, ValueError):  # names, and what a fit refuses
        return None


def is_left_out(step: Any) -> bool:
    """Whether a step or part is "passthrough" or None, and so returns its input."""
    return step is None or isinstance(step, str)


def makes_sparse(step: Any) -> bool | None:
    """Whether the output of a step on the host is sparse; None if that depends on its density."""
    if is_left_out(step):
        return False
    if isinstance(step, Pipeline):
        return makes_sparse(last_step(step))
    parts = parts_of(step, None)
    if parts is None:
        return sklearn_class_of(type(step)).__name__ in _SPARSE and bool(getattr(step, "sparse_output", True))
    found = [makes_sparse(part.estimator) for part in parts]
    if True in found and sklearn_class_of(type(step)) is FeatureUnion:
        return True
    return None if True in found or None in found else False


def n_columns(step: Any, p: int | None) -> int | None:
    """Number of output columns of an unfitted transformer for `p` columns; None if unknown before a fit."""
    if is_left_out(step):
        return p
    if isinstance(step, Pipeline):
        for child in children(step):
            p = n_columns(child.estimator, p)
        return p
    parts = parts_of(step, p)
    if parts is not None:
        return _side_by_side(parts)
    rule = _RULES.get(sklearn_class_of(type(step)).__name__)
    if p is None or rule is None or not type(step).__module__.startswith(("sklearn.", "manyfit.")):
        return None
    try:
        return rule(step, p)
    except (TypeError, ValueError):  # of a parameter that a fit refuses
        return None


def _side_by_side(parts: list[Child]) -> int | None:
    widths = [n_columns(one.estimator, None if one.columns is None else len(one.columns)) for one in parts]
    known = [width for width in widths if width is not None]
    return sum(known) if len(known) == len(widths) else None


def _powers(step: Any, p: int) -> int:
    low, high = (0, step.degree) if np.ndim(step.degree) == 0 else step.degree
    more = 0 if step.interaction_only else 1  # with it a column may stand more than once in a product
    return sum(comb(p + more * (i - 1), i) for i in range(max(1, low), high + 1)) + int(step.include_bias)


def _components(step: Any, p: int) -> int | None:
    n = step.n_components
    return p if n is None else int(n) if isinstance(n, Integral) else None


_RULES: dict[str, Callable[[Any, int], int | None]] = {
    **dict.fromkeys(
        (
            "Binarizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "OrdinalEncoder", "PowerTransformer",
            "QuantileTransformer", "RobustScaler", "StandardScaler",
        ),
        lambda step, p: p,
    ),
    **dict.fromkeys(("IncrementalPCA", "NMF", "PCA", "TruncatedSVD"), _components),
    "KBinsDiscretizer": lambda step, p: p if step.encode == "ordinal" else None,
    "PolynomialFeatures": _powers,
    "SelectKBest": lambda step, p: p if step.k == "all" else min(step.k, p),
    # A column without a value is left out, which only a fit tells.
    "SimpleImputer": lambda step, p: None if step.add_indicator else p,
}  # fmt: skip
