"""The wrapper that takes the place of a transformer in a composite and looks its fits up in a cache.

scikit-learn's own code for composites runs unchanged around it, so that feature names, output containers,
"passthrough", metadata routing and messages stay scikit-learn's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import scipy.sparse
from sklearn.base import TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manyfit._compat import pass_on_callback_context
from manyfit.arrays import deep_copy
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.composites import composite_class
from manyfit.introspection.object_state import Unkeyable, Wrapped
from manyfit.introspection.randomness import Sizes, holds_generator, is_deterministic
from manyfit.introspection.structural_key import structural_key
from manyfit.model_selection.sharing._fold_cache import CacheEntry, FoldCache
from manyfit.model_selection.sharing.nested import nested_rule
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers
from manyfit.model_selection.sharing.rows._own_rows import OwnRows, call_on_copies, has_mutable_items
from manyfit.model_selection.sharing.rows._read_only import private_copy, read_only_view
from manyfit.model_selection.sharing.transformers._column_slices import (
    PRIVATE,
    name_fit_slices,
    with_transform_slices,
)
from manyfit.model_selection.sharing.transformers._composite_rules import shares_parts, was_fully_shareable
from manyfit.model_selection.sharing.transformers._nested_fits import fit_nested


def _has(method: str) -> Callable[[Any], bool]:
    def check(wrapper: CachedTransformer) -> bool:
        getattr(wrapper._shared_target, method)  # the AttributeError names the transformer
        return True

    return check


class CachedTransformer(Wrapped):
    """A transformer in a composite whose fits and outputs come from the cache of a fold.

    One that is not shareable is fitted as usual; one that may write into its input works on copies. `copies`
    copies outputs for a next step that may write into them. Pickles and deep copies are without the wrapper.
    """

    def __init__(self, inner: Any, cache: FoldCache, copies: OwnRows | None = None) -> None:
        self._shared_inner = inner
        self._shared_cache = cache
        self._shared_copies = copies
        self._shared_next_token: int | None = None  # of the slice that a parent passes next
        self._shared_forget()

    def _shared_forget(self) -> None:
        self._shared_fitted: Any = None
        self._shared_key: int | None = None  # of the fit; None where outputs of transform are not shared
        self._shared_is_cached = False  # the fit is the same for every setting with its key
        self._shared_fit_token: int | None = None  # of the input of the fit
        self._shared_fit_method = ""

    @property
    def _shared_target(self) -> Any:
        return self._shared_inner if self._shared_fitted is None else self._shared_fitted

    @functools.cached_property
    def _shared_only_reads(self) -> bool:
        return not any_of(strangers(self._shared_inner))

    # Fit

    def _shared_token(self, X: Any, wanted: bool) -> int | None:
        token, self._shared_next_token = self._shared_next_token, None
        if token == PRIVATE or not wanted:
            return None
        return self._shared_cache.token(X) if token is None else token

    def _shared_fit_key(self, method: str, X: int, y: Any, params: dict[str, Any]) -> int | None:
        cache = self._shared_cache
        y_token = cache.token(y)
        with suppress(Unkeyable, RecursionError):
            if y_token is not None:
                structure = structural_key(self._shared_inner)
                return cache.work_key(method, structure, X, y_token, cache.params_key(params))
        return None

    def _shared_fit(self, method: str, X: Any, y: Any, params: dict[str, Any]) -> Any:
        inner, cache = self._shared_inner, self._shared_cache
        self._shared_forget()
        self._shared_fit_method = method
        verdict, parts_shared = is_deterministic(inner, _sizes(X)), shares_parts(inner)
        # After the fit of a composite it is known whether all of it was shareable.
        may_share = verdict is True or (parts_shared and verdict is None)
        token = self._shared_token(X, wanted=may_share or parts_shared)
        self._shared_fit_token = token
        key = self._shared_fit_key(method, token, y, params) if may_share and token is not None else None
        entry = None if key is None else cache.get(key)
        # If the fit changes its parameters, no other setting sees that in a clone.
        fresh = None if key is None or entry is not None else _clone_with_same_key(inner)
        if key is None or (entry is None and fresh is None):
            with pass_on_callback_context(self, inner):
                output = self._shared_run(inner, method, X, token, y, params)
            return self._shared_use_private(inner, output)
        if entry is None:
            assert fresh is not None
            before = cache.fits_requested
            with cache.noting_failure(key):
                done, output = (False, None) if params else fit_nested(self, fresh, method, X, token, y)
                if not done:
                    output = self._shared_run(fresh, method, X, token, y, params)
            entry = self._shared_entry(fresh, output, method)
            if entry is None:
                return self._shared_use_private(fresh, output)
            entry.fits = cache.fits_requested - before
            entry = cache.put(key, entry)
        else:
            cache.count_saved(entry.fits)
        if cache.rowwise is not None and entry.has_output:
            cache.rowwise.follow(inner, token, key)
        return self._shared_use(entry, key)

    def _shared_run(
        self, estimator: Any, method: str, X: Any, token: int | None, y: Any, params: dict[str, Any]
    ) -> Any:
        cache = self._shared_cache
        if shares_parts(estimator):
            if composite_class(estimator) is ColumnTransformer:
                name_fit_slices(estimator, token)
            X = X if token is None else cache.protected(X, token)
            output = getattr(estimator, method)(X, cache.share(y) if cache.is_known(y) else y, **params)
        else:
            output = None
            may_cut = method == "fit_transform" and not params and estimator is not self._shared_inner
            if cache.rowwise is not None and may_cut:
                fit = functools.partial(self._shared_call, estimator.fit, token, (X, y), {})
                output = cache.rowwise.fit_transform(estimator, token, fit)
            if output is not None:
                cache.count_saved(1)
            else:
                output = self._shared_call(getattr(estimator, method), token, (X, y), params)
                cache.count_fit()
        return output if method == "fit_transform" else None

    def _shared_call(
        self, method: Callable[..., Any], token: int | None, data: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Call a method of the transformer, on copies where it may write into its input."""
        if not self._shared_only_reads:
            return call_on_copies(method, data, params)
        known = self._shared_cache.is_known
        return method(*(read_only_view(X) if token is not None or known(X) else X for X in data), **params)

    def _shared_entry(self, fitted: Any, output: Any, method: str) -> CacheEntry | None:
        """The cache's entry for a fit; None for one that no other setting reads."""
        if shares_parts(fitted) and not was_fully_shareable(fitted):
            return None
        volatile = holds_generator(fitted)
        if method == "fit":
            return CacheEntry(fitted, volatile=volatile)
        if not self._shared_may_cache(output):
            return None
        return CacheEntry(fitted, self._shared_cacheable(output), has_output=True, volatile=volatile)

    def _shared_may_cache(self, output: Any) -> bool:
        """Whether settings can read the same output: not if its items can be changed."""
        return self._shared_cache.can_share(output) and not has_mutable_items(output)

    def _shared_cacheable(self, output: Any) -> Any:
        # A wrapper at the end of a Pipeline has registered its output.
        return output if self._shared_cache.is_known(output) else private_copy(output)

    def _shared_private_output(self, output: Any) -> Any:
        """An output that no other setting reads; that of a shared step inside keeps its token."""
        known = self._shared_cache.is_known(output)
        return output if known else self._shared_cache.register(output, None)

    def _shared_use_private(self, fitted: Any, output: Any) -> Any:
        self._shared_fitted = fitted
        return self._shared_private_output(output)

    def _shared_use(self, entry: CacheEntry, key: int) -> Any:
        # `transform` changes a generator in the fitted transformer: each setting starts from the same state.
        self._shared_fitted = deep_copy(entry.fitted) if entry.volatile else entry.fitted
        self._shared_key = None if entry.volatile else key
        self._shared_is_cached = True
        return self._shared_cache.protected(entry.output, key) if entry.has_output else None

    @available_if(_has("fit"))
    def fit(self, X: Any, y: Any = None, **params: Any) -> CachedTransformer:
        """Fit, or take the same fit of another setting."""
        self._shared_fit("fit", X, y, params)
        return self

    @available_if(_has("fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit and transform, or take the fit and output of another setting."""
        return self._shared_copied(self._shared_fit("fit_transform", X, y, params))

    def _shared_copied(self, output: Any) -> Any:
        copies = self._shared_copies
        return output if copies is None else self._shared_cache.register_copy(copies.copy(output), output)

    # Transform

    @available_if(_has("transform"))
    def transform(self, X: Any, **params: Any) -> Any:
        """Transform, or take the same output of another setting."""
        return self._shared_copied(self._shared_output(X, params))

    def _shared_output(self, X: Any, params: dict[str, Any]) -> Any:
        cache, key = self._shared_cache, self._shared_key
        token = self._shared_token(X, wanted=key is not None or shares_parts(self._shared_inner))
        work = None
        if key is not None and token is not None:
            entry = self._shared_fit_output(token) if not params else None
            if entry is not None:
                return cache.protected(entry.output, key)
            with suppress(Unkeyable, RecursionError):
                work = cache.work_key("transform", key, token, cache.params_key(params))
        if work is None:
            return self._shared_private_output(self._shared_transform(X, token, params))
        entry = cache.get(work)
        if entry is None:
            output = self._shared_transform(X, token, params)
            if not self._shared_may_cache(output):
                return self._shared_private_output(output)
            entry = cache.put(work, CacheEntry(output=self._shared_cacheable(output), has_output=True))
        if cache.rowwise is not None and not params:
            cache.rowwise.follow(self._shared_inner, token, work)
        return cache.protected(entry.output, work)

    def _shared_fit_output(self, token: int) -> CacheEntry | None:
        """The output of fit_transform on the same input, if it is fit().transform() by definition."""
        cls = sklearn_class_of(type(self._shared_inner))
        inherited = getattr(cls, "fit_transform", None) is TransformerMixin.fit_transform
        if self._shared_fit_method != "fit_transform" or token != self._shared_fit_token or not inherited:
            return None
        assert self._shared_key is not None
        return self._shared_cache.get(self._shared_key)

    def _shared_transform(self, X: Any, token: int | None, params: dict[str, Any]) -> Any:
        cache, target = self._shared_cache, self._shared_target
        if not shares_parts(self._shared_inner):
            output = None
            if cache.rowwise is not None and not params:
                output = cache.rowwise.transform(self._shared_inner, token, target)
            if output is not None:
                return output
            rule = nested_rule(target)
            method = target.transform if rule is None or params else rule.transform(target)
            return self._shared_call(method, token, (X,), params)
        if composite_class(target) is ColumnTransformer:
            target = with_transform_slices(target, X, token, self._shared_fit_token)
        return target.transform(X if token is None else cache.protected(X, token), **params)

    # Everything else is the transformer's own

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_shared_"):  # not initialized yet
            raise AttributeError(name)
        return getattr(self._shared_target, name)

    # For isinstance, and for the names in scikit-learn's messages.
    __class__ = property(lambda self: type(self._shared_target))  # type: ignore[assignment]

    def set_params(self, **params: Any) -> CachedTransformer:
        """Set parameters of the transformer, and forget its fit."""
        self._shared_forget()
        self._shared_inner.set_params(**params)
        return self

    @available_if(_has("set_output"))
    def set_output(self, *, transform: str | None = None) -> CachedTransformer:
        """Set the output container of the transformer, for this setting only."""
        self._shared_inner.set_output(transform=transform)
        if self._shared_fitted is not None and self._shared_fitted is not self._shared_inner:
            self._shared_fitted = deep_copy(self._shared_fitted).set_output(transform=transform)
            self._shared_key = None
        return self

    def __repr__(self) -> str:
        return repr(self._shared_target)

    def __sklearn_clone__(self) -> CachedTransformer:
        other = CachedTransformer(clone(self._shared_inner), self._shared_cache, self._shared_copies)
        other._shared_next_token = self._shared_next_token
        return other

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._shared_target)

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self._shared_target)
        except NotFittedError:
            return False
        return True

    def __copy__(self) -> CachedTransformer:
        other = object.__new__(CachedTransformer)
        vars(other).update(vars(self))
        return other

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return _identity, (self._shared_target,)


def _sizes(X: Any) -> Sizes:
    shape = getattr(X, "shape", None)
    if shape is None:
        return Sizes(len(X) if hasattr(X, "__len__") else None)
    n_features = int(shape[1]) if len(shape) == 2 else None
    return Sizes(int(shape[0]) if shape else None, n_features, scipy.sparse.issparse(X))


def _clone_with_same_key(estimator: Any) -> Any:
    """A clone; None for an estimator that holds what its clones do not, or that only equals itself."""
    fresh = clone(estimator)
    return fresh if structural_key(fresh) == structural_key(estimator) else None


def _identity(thing: Any) -> Any:
    return thing
