"""Fits a transformer by narrowing a fit that serves other settings too."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from manyfit._compat import wrap_output
from manyfit.introspection.randomness import Sizes, holds_generator
from manyfit.model_selection.sharing._fold_cache import CacheEntry
from manyfit.model_selection.sharing.nested import nested_key, nested_rule


def fit_nested(wrapper: Any, step: Any, method: str, X: Any, token: int | None, y: Any) -> tuple[bool, Any]:
    """Fit the unfitted `step` of a wrapper to a known input, by the wide fit of its rule.

    Returns whether it is fitted, and its output if `method` is "fit_transform".
    """
    cache, rule = wrapper._shared_cache, nested_rule(step)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if rule is None or len(shape) != 2:
        return False, None
    if not rule.nests(step, Sizes(shape[0], shape[1], scipy.sparse.issparse(X))):
        return False, None
    nested = nested_key(step)
    key = cache.work_key(nested, token, cache.token(y))

    def keep(fitted: Any, output: Any) -> CacheEntry:
        if not wrapper._shared_only_reads:
            _copy_arrays(fitted)
        entry: CacheEntry = cache.put(key, CacheEntry(fitted, output, has_output=output is not None))
        return entry

    entry, saved = cache.get(key), 1
    if entry is None:
        asked = () if cache.requests is None else cache.requests.of(nested)
        wide = rule.wide(step, asked, X) if cache.is_new(key) else None
        if wide is None or holds_generator(wide):
            return False, None
        if wide is step:
            output = wrapper._shared_run(step, method, X, token, y, {})
            keep(step, None)
            return True, output
        with cache.noting_failure(key):
            how = "fit_transform" if rule.needs_output(wide, X) else "fit"
            output = wrapper._shared_run(wide, how, X, token, y, {})
        entry, saved = keep(wide, output), 0
    if not rule.holds(step, entry.fitted, X):
        return False, None
    rule.narrow(step, entry.fitted, X)
    cache.count_saved(saved)
    if method != "fit_transform":
        return True, None
    output = rule.output(step, entry.output)
    if output is None:
        return True, wrapper._shared_call(rule.transform(step), token, (X,), {})
    return True, wrap_output(output, X, step)


def _copy_arrays(fitted: Any) -> None:
    """Copy the learned arrays of a transformer, since a score function of a user may reuse their memory."""
    vars(fitted).update(
        {name: value.copy() for name, value in vars(fitted).items() if type(value) is np.ndarray}
    )
