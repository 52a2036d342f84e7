"""Tokens for the slices that a ColumnTransformer passes to its branches.

Slices are new arrays each time. Their tokens are made of the input and the columns, since hashing the content
takes about as long as scaling it.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any

from manyfit.introspection.composites import Child, children
from manyfit.introspection.structural_key import Unkeyable, structural_key
from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.transformers._composite_rules import is_wrapped

# In place of a token: the input belongs to one setting, and hashing it is of no use.
PRIVATE = -1


def name_fit_slices(transformer: Any, token: int | None) -> None:
    """Give each branch of an unfitted ColumnTransformer the token of its slice of the input `token`."""
    *branches, remainder = children(transformer)
    for branch in branches:
        _set_token(branch, "columns", token, _columns_key(branch.columns))
    _set_token(remainder, "remainder", token, _columns_key(*(branch.columns for branch in branches)))


def with_transform_slices(transformer: Any, X: Any, token: int | None, fit_token: int | None) -> Any:
    """A shallow copy of a fitted ColumnTransformer whose branches have the tokens of their slices of `X`.

    Other settings and threads may be using the original. `fit_token` is the token of the fit's input.
    """
    # By its names, transform selects the columns of a frame that fit has selected only if they are unique.
    unique = getattr(getattr(X, "columns", None), "is_unique", True)
    branches = []
    for child in children(transformer, fitted=True):
        branch = child.estimator
        if is_wrapped(branch):
            branch = copy.copy(branch)
            fitted_on = branch._shared_fit_token
            if token is not None and token == fit_token and fitted_on is not None and unique:
                branch._shared_next_token = fitted_on
            else:
                columns = None if fit_token is None else (fit_token, _columns_key(child.columns))
                _set_token(child._replace(estimator=branch), "test", token, child.name, columns)
        branches.append((child.name, branch, child.columns))
    other = object.__new__(type(transformer))
    vars(other).update(vars(transformer), transformers_=branches)
    return other


def _set_token(child: Child, kind: str, token: int | None, *key: Hashable) -> None:
    if not is_wrapped(child.estimator):
        return
    cache: FoldCache = child.estimator._shared_cache
    made: int | None = None
    if token is None:
        made = PRIVATE
    elif None not in key:
        made = cache.number("slice", kind, token, *key)
        if cache.rowwise is not None:
            cache.rowwise.follow_column(child.columns, token, made)
    child.estimator._shared_next_token = made


def _columns_key(*columns: Any) -> Hashable | None:
    try:
        return structural_key(columns)
    except (Unkeyable, RecursionError):
        return None
