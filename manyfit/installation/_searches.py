"""`fit` of scikit-learn's searches: a shadow of manyfit's runs, and hands over its attributes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, wraps
from inspect import signature
from typing import Any

from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from manyfit._compat import (
    SEARCH_METHODS,
    SklearnHalvingGridSearchCV,
    SklearnHalvingRandomSearchCV,
    callbacks_of,
    fit_context,
    has_input_hook,
    parameter_constraints,
)
from manyfit.installation._ledger import keep
from manyfit.installation._settings import Settings, current
from manyfit.model_selection import Report
from manyfit.model_selection.search import SharedSearch
from manyfit.model_selection.search.adaptive import HalvingSearch

_HALVING = (SklearnHalvingGridSearchCV, SklearnHalvingRandomSearchCV)
SEARCHES = (GridSearchCV, RandomizedSearchCV, *_HALVING)
# Projects whose arrays and frames lie in the memory of the host; "builtins" for lists and None.
_HOSTS = frozenset({"builtins", "numpy", "pandas", "polars", "pyarrow", "scipy"})
_OPTIONS = ("sharing", "verify", "memory_limit", "client", "checkpoint", "early_stopping", "engine")
# Attributes of a shadow that its search does not get.
_OWN = frozenset({*_OPTIONS, "fits_within", "report_", "partial_results_", "_frozen"})


class _Shadow(SharedSearch):
    """What shadows add to manyfit's searches. Their options are attributes, since a shadow has the parameters
    of scikit-learn's search, and its `repr`; whoever pickles it gets the search that it stands for.
    """

    announces_refit = keeps_partial_results = False
    _stands_for: type

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        state = {name: value for name, value in self.__getstate__().items() if name not in _OWN}
        return object.__new__, (self._stands_for,), state  # `copyreg.__newobj__` takes its own class only


def serving_fit(search_class: type) -> Callable[..., Any]:
    """A `fit` for one of scikit-learn's search classes, which looks like its own."""
    original: Callable[..., Any] = search_class.fit  # type: ignore[attr-defined]

    @wraps(original)
    def fit(self: Any, X: Any, y: Any = None, **params: Any) -> Any:
        settings = current()
        if settings is None:
            return original(self, X, y, **params)
        why = _why_not(self, fit) or reason_not_to_serve(self, (X, y, *params.values()))
        if why is None:
            _run_shadow(self, search_class, settings, X, y, params)
            return self
        fitted = original(self, X, y, **params)
        _keep_unshared(self, why)
        return fitted

    fit.__qualname__ = f"{search_class.__qualname__}.fit"  # where pickle finds it
    return fit


def _why_not(search: Any, fit: Callable[..., Any]) -> str | None:
    """Why scikit-learn has to run a search whose `fit` has called ours; None if that is its own."""
    cls = type(search)
    return f"{cls.__name__} overrides fit" if cls.fit is not fit or "fit" in vars(search) else None


def reason_not_to_serve(search: Any, data: tuple[Any, ...]) -> str | None:
    """Why scikit-learn has to run a search on some data; None if a shadow can."""
    changed = [name for name in SEARCH_METHODS if _overrides(search, name)]
    if changed:
        return f"{type(search).__name__} overrides {', '.join(changed)}"
    # Other callbacks may ask for the very object that is fitted, and would get the shadow.
    if not all(type(one).__module__.startswith("sklearn.callback._") for one in callbacks_of(search)):
        return "callbacks that are not scikit-learn's"
    return foreign_data(data)


def foreign_data(values: Iterable[Any]) -> str | None:
    """Why scikit-learn has to read some data: the type of the first value that is none of `_HOSTS`.

    Data on a device, in files or in Dask collections are read by manyfit's own classes only: scikit-learn
    raises for some of them, and an installed search raises the same.
    """
    for value in values:
        if type(value).__module__.partition(".")[0] not in _HOSTS:
            return f"data of the type {type(value).__module__}.{type(value).__qualname__}"
    return None


def _overrides(search: Any, name: str) -> bool:
    found, base = getattr(type(search), name, None), base_of(search)
    return name in vars(search) or found is not getattr(base, name, None)


def base_of(search: Any) -> Any:
    """The search class of scikit-learn's from which a search derives, or None."""
    return next((one for one in SEARCHES if isinstance(search, one)), None)


@fit_context  # its errors name the class of the search itself
def _run_shadow(
    search: Any, base: type, settings: Settings, X: Any, y: Any, params: Mapping[str, Any]
) -> None:
    shadow = shadow_of(search, base, settings)
    before, finished = dict(vars(shadow)), False
    try:
        if settings.show_plans:
            print(f"{type(search).__name__}.fit\n{shadow.plan(X, y, **params)}", file=sys.stderr, flush=True)
        shadow.fit(X, y, **params)
        finished = True
    finally:
        for name, value in vars(shadow).items():
            if name not in _left_out(shadow, finished) and (name not in before or before[name] is not value):
                setattr(search, name, value)
        if "report_" in vars(shadow):
            keep(f"{type(search).__name__}.fit", shadow.report_, search)


def _left_out(shadow: SharedSearch, finished: bool) -> frozenset[str]:
    """Names of attributes that scikit-learn's search would not have."""
    if has_input_hook():
        return _OWN
    # Before 1.8 only a halving one keeps its splitter, and each sets `n_splits_` at its end.
    splitter = frozenset() if shadow.checks_input else {"_checked_cv_orig"}
    return _OWN | splitter | (frozenset() if finished else {"n_splits_"})


def shadow_of(search: Any, base: type, settings: Settings) -> Any:
    """A search of manyfit's with the parameters and attributes of one of scikit-learn's."""
    cls = _shadow_class(base)
    if type(search) is not base:  # errors and callbacks name the class of the user
        names = {"__module__": type(search).__module__, "__qualname__": type(search).__qualname__}
        cls = type(type(search).__name__, (cls,), {**names, "_stands_for": type(search)})
    shadow = cls(**{name: getattr(search, name) for name in signature(base).parameters})
    vars(shadow).update(vars(search))
    vars(shadow).update({name: getattr(settings, name) for name in _OPTIONS if hasattr(settings, name)})
    shadow.fits_within = settings.fits_within(search.estimator)
    return shadow


@cache
def _shadow_class(base: type) -> type:
    names = {"__module__": base.__module__, "__qualname__": base.__qualname__, "_stands_for": base}
    constraints = {"_parameter_constraints": parameter_constraints(base)}
    ours = (_Shadow, HalvingSearch) if base in _HALVING else (_Shadow,)
    return type(base.__name__, (*ours, base), {**names, **constraints})


def _keep_unshared(search: Any, why: str) -> None:
    """Keep the report of a search that scikit-learn has run."""
    with suppress(Exception):  # a subclass may keep its results in another form
        n = len(search.cv_results_["params"]) * search.n_splits_
        report = Report(fits_requested=n, fits_done=n, left_to_sklearn={why: n})
        keep(f"{type(search).__name__}.fit", report, search)
