"""Fits a transformer by narrowing a fit that serves other settings too."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import scipy.sparse

from manyfit._compat import wrap_output
from manyfit.introspection.randomness import Sizes, holds_generator
from manyfit.model_selection.sharing._fold_cache import CacheEntry, FoldCache
from manyfit.model_selection.sharing.nested import nested_key, nested_rule


class NestedFit:
    """The fit of an unfitted `step` to a known input, by the wide fit of its rule.

    `tokens` stand for the input and targets of the fit. ``run(estimator, method)`` fits and counts, and
    ``call(method)`` applies a method of the step to `X`.
    """

    def __init__(
        self,
        step: Any,
        cache: FoldCache,
        tokens: tuple[Hashable, Hashable],
        X: Any,
        run: Callable[[Any, str], Any],
        call: Callable[[Callable[..., Any]], Any],
        *,
        only_reads: bool,
    ) -> None:
        self._step, self._cache, self._tokens, self._X = step, cache, tokens, X
        self._run, self._call, self._only_reads = run, call, only_reads

    def fit(self, method: str) -> tuple[bool, Any]:
        """Whether the step is now fitted, and its output if `method` is "fit_transform"."""
        step, rule, cache, X = self._step, nested_rule(self._step), self._cache, self._X
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if (
            rule is None
            or len(shape) != 2
            or not rule.nests(step, Sizes(shape[0], shape[1], scipy.sparse.issparse(X)))
        ):
            return False, None
        nested = nested_key(step)
        assert nested is not None
        key = cache.work_key(nested, *self._tokens)
        entry, saved = cache.get(key), 1
        if entry is None:
            wide = rule.wide(step, cache.nested_requests(nested), X) if cache.is_new(key) else None
            if wide is None or holds_generator(wide):
                return False, None
            if wide is step:
                return True, self._fit_itself(method, key)
            entry, saved = self._fit_wide(wide, key, rule.needs_output(wide, X)), 0
        if not rule.holds(step, entry.fitted, X):
            return False, None
        rule.narrow(step, entry.fitted, X)
        cache.count_saved(saved)
        if method != "fit_transform":
            return True, None
        output = rule.output(step, entry.output)
        return True, self._call(rule.transform(step)) if output is None else wrap_output(output, X, step)

    def _fit_itself(self, method: str, key: int) -> Any:
        output = self._run(self._step, method)
        self._keep(self._step, None, key)
        return output

    def _fit_wide(self, wide: Any, key: int, needs_output: bool) -> CacheEntry:
        with self._cache.noting_failure(key):
            output = self._run(wide, "fit_transform" if needs_output else "fit")
        return self._keep(wide, output, key)

    def _keep(self, wide: Any, output: Any, key: int) -> CacheEntry:
        if not self._only_reads:
            _copy_arrays(wide)
        return self._cache.put(key, CacheEntry(wide, output, has_output=output is not None))


def _copy_arrays(fitted: Any) -> None:
    """Copy the learned arrays of a transformer, since a score function of a user may reuse their memory."""
    vars(fitted).update(
        {name: value.copy() for name, value in vars(fitted).items() if type(value) is np.ndarray}
    )
