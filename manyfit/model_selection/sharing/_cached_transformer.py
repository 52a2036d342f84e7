"""Shared prefixes: on one fold, a transformer with the same parameters and input is fitted and applied once.

The mechanism is substitution. Inside scikit-learn's own composites each transformer is replaced by a thin
wrapper that looks up a cache; scikit-learn's code for composites then runs unchanged, so that feature names,
output containers, "passthrough", metadata routing and messages stay scikit-learn's.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Hashable
from typing import Any

import scipy.sparse
from sklearn.base import TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manyfit._compat import pass_on_callback_context
from manyfit._drop_in_classes import sklearn_class_of
from manyfit.arrays import deep_copy
from manyfit.introspection.randomness import (
    Sizes,
    holds_generator,
    is_deterministic,
    is_shareable,
    writes_in_place,
)
from manyfit.introspection.structural_key import Unkeyable, Wrapped, structural_key
from manyfit.model_selection.sharing._fold_cache import (
    CacheEntry,
    FoldCache,
    lendable,
    private_copy,
    read_only_view,
)
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers
from manyfit.model_selection.sharing.rows._own_rows import OwnRows, call_on_copies, items_in_common

__all__ = [
    "FoldCache",
    "has_shareable_prefix",
    "is_shareable",
    "lendable",
    "share_prefixes",
    "writes_in_place",
]


class _Private:
    """As the source of a branch: its input belongs to one setting, and it is no use to hash it."""


_PRIVATE = _Private()


def _sizes(X: Any) -> Sizes:
    shape = getattr(X, "shape", None)
    if shape is None:
        return Sizes(len(X) if hasattr(X, "__len__") else None)
    n_features = int(shape[1]) if len(shape) == 2 else None
    return Sizes(int(shape[0]) if shape else None, n_features, scipy.sparse.issparse(X))


def _has(method: str) -> Callable[[Any], bool]:
    def check(wrapper: CachedTransformer) -> bool:
        getattr(wrapper._shared_target, method)  # the AttributeError names the transformer
        return True

    return check


class CachedTransformer(Wrapped):
    """Stands in a composite for a transformer, and takes its fits and outputs from a cache.

    Parameters
    ----------
    inner : estimator
        The unfitted transformer.
    cache : FoldCache
        Of the fold.
    handed : OwnRows, optional
        Makes copies of outputs for whoever reads them next and may write into them.

    Notes
    -----
    What is not shareable (decided at fit, when the shape of the input is known) is wrapped too, and fitted as
    it is: only wrappers get lent arrays inside a composite, so none is changed under its token. One that is
    not known to leave its input as it is works on copies, and its outputs are copied, too: they may be views.
    Pickling and deep copies give the transformer without the wrapper.
    """

    def __init__(self, inner: Any, cache: FoldCache, handed: OwnRows | None = None) -> None:
        self._shared_inner = inner
        self._shared_cache = cache
        self._shared_handed = handed
        self._shared_source: int | _Private | None = None  # token of the slice that a parent hands over next
        self._shared_forget()

    def _shared_forget(self) -> None:
        self._shared_fitted: Any = None
        self._shared_key: int | None = None  # of the fit; None where outputs of transform are not shared
        self._shared_settled = False  # the fit is the same for every setting with its key
        self._shared_fit_x: int | None = None  # token of what it was fitted on
        self._shared_fit_method = ""

    @property
    def _shared_target(self) -> Any:
        return self._shared_inner if self._shared_fitted is None else self._shared_fitted

    @functools.cached_property
    def _shared_leaves_input(self) -> bool:
        return not any_of(strangers(self._shared_inner))

    # Fit

    def _shared_token(self, X: Any, wanted: bool) -> int | None:
        source, self._shared_source = self._shared_source, None
        if isinstance(source, _Private) or not wanted:
            return None
        return self._shared_cache.token(X) if source is None else source

    def _shared_fit_key(self, method: str, X: int, y: Any, params: dict[str, Any]) -> int | None:
        cache = self._shared_cache
        y_token = cache.token(y)
        try:
            if y_token is not None:
                structure = structural_key(self._shared_inner)
                return cache.work(method, structure, X, y_token, cache.arguments(params))
        except (Unkeyable, RecursionError):
            pass
        return None

    def _shared_fit(self, method: str, X: Any, y: Any, params: dict[str, Any]) -> Any:
        inner, cache = self._shared_inner, self._shared_cache
        self._shared_forget()
        self._shared_fit_method = method
        verdict = is_deterministic(inner, _sizes(X))
        walked = _is_walked(inner)
        # Of a composite it can be seen after the fit whether all of it was shareable.
        may = verdict is True or (walked and verdict is None)
        token = self._shared_token(X, wanted=may or walked)
        self._shared_fit_x = token
        key = self._shared_fit_key(method, token, y, params) if may and token is not None else None
        item = None if key is None else cache.get(key)
        # Also if the fit changes its parameters, no other setting sees it.
        fresh = None if key is None or item is not None else _clone_with_its_key(inner)
        if key is None or (item is None and fresh is None):
            with pass_on_callback_context(self, inner):
                output = self._shared_run(inner, method, X, token, y, params)
            return self._shared_keep_alone(inner, output)
        if item is None:
            before = cache.stands_for
            with cache.failed.noted(key):
                output = self._shared_run(fresh, method, X, token, y, params)
            item = self._shared_item(fresh, output, method)
            if item is None:
                return self._shared_keep_alone(fresh, output)
            item.fits = cache.stands_for - before
            item = cache.put(key, item)
        else:
            cache.count_saved(item.fits)
        if cache.front is not None and item.has_output:
            cache.front.follow(inner, token, key)
        return self._shared_adopt(item, key)

    def _shared_run(
        self, estimator: Any, method: str, X: Any, token: int | None, y: Any, params: dict[str, Any]
    ) -> Any:
        cache = self._shared_cache
        if _is_walked(estimator):
            if sklearn_class_of(type(estimator)) is ColumnTransformer:
                _name_slices(estimator, token)
            X = X if token is None else cache.present(X, token)
            output = getattr(estimator, method)(X, cache.lend(y) if cache.is_known(y) else y, **params)
        else:
            output = self._shared_cut(token, params) if method == "fit_transform" else None
            if output is not None:
                self._shared_call(estimator.fit, token, (X, y), {})  # learns nothing, but may refuse
                cache.count_saved(1)
            else:
                output = self._shared_call(getattr(estimator, method), token, (X, y), params)
                cache.count_fit()
        return output if method == "fit_transform" else None

    def _shared_call(
        self, method: Callable[..., Any], token: int | None, data: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Call a method of the transformer, on copies of its own where it may write into its input."""
        if self._shared_leaves_input:
            known = self._shared_cache.is_known
            return method(
                *(read_only_view(X) if token is not None or known(X) else X for X in data), **params
            )
        return call_on_copies(method, data, params)

    def _shared_cut(self, token: int | None, params: dict[str, Any]) -> Any:
        """The output, where it was made of all rows of the search at once; else None."""
        front = self._shared_cache.front
        return None if front is None or params else front.output(self._shared_inner, token)

    def _shared_keep_alone(self, fitted: Any, output: Any) -> Any:
        self._shared_fitted = fitted
        return self._shared_private(output)

    def _shared_private(self, output: Any) -> Any:
        """An output that only this setting has. What a wrapper at the end of a Pipeline named stays named."""
        cache = self._shared_cache
        named = type(self._shared_inner) is Pipeline and cache.is_known(output)
        return output if named or output is None else cache.name(output, None)

    def _shared_may_keep(self, output: Any) -> bool:
        """Whether settings can be given the same output: not where it holds lists, which they may change."""
        return self._shared_cache.lends(output) and not items_in_common(output)

    def _shared_kept(self, output: Any) -> Any:
        named = type(self._shared_inner) is Pipeline and self._shared_cache.is_known(output)
        return output if named else private_copy(output)

    def _shared_item(self, fitted: Any, output: Any, method: str) -> CacheEntry | None:
        """What may be cached of a fit, or None."""
        if _is_walked(fitted) and not _settled(fitted):
            return None
        if method == "fit":
            return CacheEntry(fitted, volatile=holds_generator(fitted))
        if not self._shared_may_keep(output):
            return None
        return CacheEntry(
            fitted, self._shared_kept(output), has_output=True, volatile=holds_generator(fitted)
        )

    def _shared_adopt(self, item: CacheEntry, key: int) -> Any:
        # With a generator inside, transform changes what is fitted: each setting starts from the same state.
        self._shared_fitted = deep_copy(item.fitted) if item.volatile else item.fitted
        self._shared_key = None if item.volatile else key
        self._shared_settled = True
        return self._shared_cache.present(item.output, key) if item.has_output else None

    @available_if(_has("fit"))
    def fit(self, X: Any, y: Any = None, **params: Any) -> CachedTransformer:
        """Fit, or take over the same fit of another setting."""
        self._shared_fit("fit", X, y, params)
        return self

    @available_if(_has("fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit and transform, or take over what another setting did."""
        return self._shared_hand_over(self._shared_fit("fit_transform", X, y, params))

    def _shared_hand_over(self, output: Any) -> Any:
        handed = self._shared_handed
        return output if handed is None else handed.of(output, self._shared_cache)

    # Transform

    @available_if(_has("transform"))
    def transform(self, X: Any, **params: Any) -> Any:
        """Transform, or take over the same output of another setting."""
        return self._shared_hand_over(self._shared_output(X, params))

    def _shared_output(self, X: Any, params: dict[str, Any]) -> Any:
        cache, key = self._shared_cache, self._shared_key
        token = self._shared_token(X, wanted=key is not None or _is_walked(self._shared_inner))
        if key is None or token is None:
            return self._shared_private(self._shared_transform(X, token, params))
        item = self._shared_fit_output(token) if not params else None
        if item is not None:
            return cache.present(item.output, key)
        try:
            key = cache.work("transform", key, token, cache.arguments(params))
        except (Unkeyable, RecursionError):
            return self._shared_private(self._shared_transform(X, token, params))
        item = cache.get(key)
        if item is None:
            output = self._shared_transform(X, token, params)
            if not self._shared_may_keep(output):
                return self._shared_private(output)
            item = cache.put(key, CacheEntry(output=self._shared_kept(output), has_output=True))
        if cache.front is not None and not params:
            cache.front.follow(self._shared_inner, token, key)
        return cache.present(item.output, key)

    def _shared_fit_output(self, token: int) -> CacheEntry | None:
        """The output of fit_transform on the same input, where that is fit().transform() by definition."""
        served = sklearn_class_of(type(self._shared_inner))
        inherited = getattr(served, "fit_transform", None) is TransformerMixin.fit_transform
        if self._shared_fit_method != "fit_transform" or token != self._shared_fit_x or not inherited:
            return None
        assert self._shared_key is not None
        return self._shared_cache.get(self._shared_key)

    def _shared_transform(self, X: Any, token: int | None, params: dict[str, Any]) -> Any:
        cache, target = self._shared_cache, self._shared_target
        if not _is_walked(self._shared_inner):
            output = self._shared_cut(token, params)
            return self._shared_call(target.transform, token, (X,), params) if output is None else output
        if sklearn_class_of(type(target)) is ColumnTransformer:
            target = _with_named_slices(target, X, token, self._shared_fit_x)
        return target.transform(X if token is None else cache.present(X, token), **params)

    # The rest is the transformer's own

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_shared_"):  # not initialized yet
            raise AttributeError(name)
        return getattr(self._shared_target, name)

    # For isinstance, and for the names in scikit-learn's messages.
    __class__ = property(lambda self: type(self._shared_target))  # type: ignore[assignment]

    def set_params(self, **params: Any) -> CachedTransformer:
        """Set parameters of the transformer; what was fitted is let go."""
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
        other = CachedTransformer(clone(self._shared_inner), self._shared_cache, self._shared_handed)
        other._shared_source = self._shared_source
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
        return _itself, (self._shared_target,)


def _clone_with_its_key(estimator: Any) -> Any:
    """A clone; None for an estimator that holds what its clones do not have, or what equals only itself."""
    fresh = clone(estimator)
    return fresh if structural_key(fresh) == structural_key(estimator) else None


def _itself(thing: Any) -> Any:
    return thing


# ColumnTransformer hands its branches fresh slices. They are known by the input and the columns, so that
# their content need not be hashed, which takes about as long as scaling them.


def _slice_key(*columns: Any) -> Hashable | None:
    try:
        return structural_key(columns)
    except (Unkeyable, RecursionError):
        return None


def _source(cache: FoldCache, kind: str, token: int | None, *key: Hashable) -> int | _Private | None:
    if token is None:
        return _PRIVATE
    return None if None in key else cache.number("slice", kind, token, *key)


def _name_slices(columns: Any, token: int | None) -> None:
    """Tell the branches of an unfitted ColumnTransformer which slices of `token` they will be fitted on."""
    everything = _slice_key(*(spec for _, _, spec in columns.transformers))
    for _, branch, spec in columns.transformers:
        if isinstance(branch, CachedTransformer):
            branch._shared_source = _source(branch._shared_cache, "columns", token, _slice_key(spec))
    if isinstance(columns.remainder, CachedTransformer):
        rest = columns.remainder
        rest._shared_source = _source(rest._shared_cache, "remainder", token, everything)


def _with_named_slices(columns: Any, X: Any, token: int | None, fit_token: int | None) -> Any:
    """The same for a fitted one, in a shallow copy: other settings and threads may be using it."""
    # At transform a frame is sliced by names, which finds the same columns as at fit only if they are unique.
    unique = getattr(getattr(X, "columns", None), "is_unique", True)
    branches = []
    for name, branch, spec in columns.transformers_:
        if isinstance(branch, CachedTransformer):
            branch = copy.copy(branch)
            fitted_on = branch._shared_fit_x
            if token is not None and token == fit_token and fitted_on is not None and unique:
                branch._shared_source = fitted_on
            else:
                key = None if fit_token is None else (fit_token, _slice_key(spec))
                branch._shared_source = _source(branch._shared_cache, "test", token, name, key)
        branches.append((name, branch, spec))
    return _changed(columns, {"transformers_": branches})


def _changed(estimator: Any, attributes: dict[str, Any]) -> Any:
    """A shallow copy with other attributes."""
    other = object.__new__(type(estimator))
    vars(other).update(vars(estimator), **attributes)
    return other


# Walking composites


def _is_walked(estimator: Any) -> bool:
    """Whether what is inside a transformer is shared too. Exact types: a subclass may do anything.

    A Pipeline with `memory` caches by itself, and a ColumnTransformer may hand its input to functions of the
    user that choose columns; as a step each of them is shared as a whole.
    """
    kind = sklearn_class_of(type(estimator))
    if kind is ColumnTransformer and _is_list_of(3, estimator.transformers):
        return not any_of(strangers([columns for _, _, columns in estimator.transformers]))
    return kind in (FeatureUnion, ColumnTransformer) or (kind is Pipeline and estimator.memory is None)


def _only_regressor(estimator: Any) -> bool:
    """Whether a TransformedTargetRegressor hands targets to nobody else who may write into them."""
    if sklearn_class_of(type(estimator)) is not TransformedTargetRegressor:
        return False
    return not any_of(strangers((estimator.func, estimator.inverse_func, estimator.transformer)))


def _is_transformer(thing: Any) -> bool:
    """What scikit-learn accepts as a transformer; the rest is left for its error messages."""
    return (
        not isinstance(thing, (str, type, CachedTransformer))
        and hasattr(thing, "get_params")
        and hasattr(thing, "transform")
        and (hasattr(thing, "fit") or hasattr(thing, "fit_transform"))
    )


def _is_list_of(length: int, items: Any) -> bool:
    return isinstance(items, (list, tuple)) and all(
        isinstance(item, tuple) and len(item) == length for item in items
    )


def _fitted_parts(composite: Any) -> list[Any]:
    if sklearn_class_of(type(composite)) is ColumnTransformer:
        return [branch for _, branch, _ in composite.transformers_]
    parts = composite.steps if type(composite) is Pipeline else composite.transformer_list
    return [part for _, part in parts]


def _settled(composite: Any) -> bool:
    """Whether all that was fitted inside a composite was shareable."""
    for part in _fitted_parts(composite):
        if type(part) is CachedTransformer:
            if part._shared_fitted is not None and not part._shared_settled:
                return False  # a branch without columns stays unfitted
        elif not (part is None or isinstance(part, str)) and is_deterministic(part) is not True:
            return False
    return True


def _wrap(thing: Any, cache: FoldCache, handed: OwnRows | None) -> Any:
    if not _is_transformer(thing):
        return thing
    if _is_walked(thing):
        _wrap_inside(thing, cache, handed, is_transformer=True)
    return CachedTransformer(thing, cache)


def _wrap_steps(pipeline: Any, cache: FoldCache, handed: OwnRows | None, is_transformer: bool) -> None:
    steps, wrapped = list(pipeline.steps), 0
    for i, (name, step) in enumerate(steps):
        if i == len(steps) - 1 and not is_transformer:
            _wrap_inside(step, cache, handed, is_transformer=False)
            break
        # What is behind a step that draws has its own input in each setting: it is counted, not shared.
        steps[i] = (name, _wrap(step, cache, handed))
        wrapped = i + 1 if type(steps[i][1]) is CachedTransformer else wrapped
    if 0 < wrapped < len(steps):  # what follows reads the output as it is
        steps[wrapped - 1][1]._shared_handed = handed
    pipeline.steps = steps


def _wrap_inside(estimator: Any, cache: FoldCache, handed: OwnRows | None, is_transformer: bool) -> None:
    kind = sklearn_class_of(type(estimator))
    if kind is Pipeline and estimator.memory is None and _is_list_of(2, estimator.steps):
        _wrap_steps(estimator, cache, handed, is_transformer)
    elif kind is FeatureUnion and _is_list_of(2, estimator.transformer_list):
        parts = estimator.transformer_list
        estimator.transformer_list = [(name, _wrap(part, cache, handed)) for name, part in parts]
    elif kind is ColumnTransformer and _is_list_of(3, estimator.transformers) and _is_walked(estimator):
        branches = estimator.transformers
        estimator.transformers = [(name, _wrap(part, cache, handed), spec) for name, part, spec in branches]
        estimator.remainder = _wrap(estimator.remainder, cache, handed)
    elif _only_regressor(estimator):
        _wrap_inside(estimator.regressor, cache, handed, is_transformer=False)


def share_prefixes(
    estimator: Any, cache: FoldCache, *, is_transformer: bool = False, handed: OwnRows | None = None
) -> Any:
    """Let an estimator share the fits of its transformers with others on the same fold.

    Parameters
    ----------
    estimator : estimator
        Unfitted, with its parameters set, and the caller's own: it is changed in place. Transformers are
        replaced inside Pipeline, FeatureUnion, ColumnTransformer and TransformedTargetRegressor (exact
        types), at any depth. One that :func:`writes_in_place` is left as it is: give it rows of its own.
    cache : FoldCache
        Of the fold. What the estimator is fitted on and predicts should come from `cache.lend`.
    is_transformer : bool, default=False
        Whether the last step of a Pipeline is a transformer to be shared, not the predictor.
    handed : OwnRows, optional
        Makes copies of what the predictor is handed by shared steps. None: it gets what is shared.

    Returns
    -------
    estimator
        The same. After the fit, :func:`unshare` makes it scikit-learn's own again.
    """
    if not writes_in_place(estimator):
        _wrap_inside(estimator, cache, handed, is_transformer)
    return estimator


def _would_share_step(step: Any) -> bool:
    may = _is_transformer(step) and is_deterministic(step) is not False
    return may or (_is_walked(step) and _would_share(step, True))


def _would_share(estimator: Any, is_transformer: bool) -> bool:
    kind = sklearn_class_of(type(estimator))
    if kind is Pipeline and estimator.memory is None and _is_list_of(2, estimator.steps):
        steps = [step for _, step in estimator.steps]
        last = None if is_transformer or not steps else steps.pop()
        for step in steps:
            if _is_transformer(step):  # the first one decides: what follows it has its output as input
                return _would_share_step(step)
        return last is not None and _would_share(last, False)
    if kind is FeatureUnion and _is_list_of(2, estimator.transformer_list):
        return any(_would_share_step(part) for _, part in estimator.transformer_list)
    if kind is ColumnTransformer and _is_list_of(3, estimator.transformers) and _is_walked(estimator):
        parts = [*(part for _, part, _ in estimator.transformers), estimator.remainder]
        return any(map(_would_share_step, parts))
    return _only_regressor(estimator) and _would_share(estimator.regressor, False)


def has_shareable_prefix(estimator: Any) -> bool:
    """Whether :func:`share_prefixes` would find something to share in an estimator.

    Parameters
    ----------
    estimator : estimator
        Unfitted.

    Returns
    -------
    bool
        True also where it depends on the shape of the data (PCA with ``svd_solver="auto"``).
    """
    return _would_share(estimator, is_transformer=False) and not writes_in_place(estimator)
