"""Fits by scikit-learn-intelex: which settings it may fit, and their estimators in its classes."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.base import clone

from manyfit.arrays import is_xp_array
from manyfit.folds import is_row_source
from manyfit.introspection.composites import build_setting, children, composite_class, replace_children
from manyfit.introspection.randomness import Sizes, ignores_random_state, is_deterministic
from manyfit.model_selection.job._job import Job


def sklearnex_version() -> str:
    """The version of scikit-learn-intelex; raises an ImportError that says what to do without it."""
    try:
        importlib.import_module("sklearnex")
    except ImportError as error:
        raise ImportError(
            "engine='sklearnex' makes fits by scikit-learn-intelex, which cannot be imported. Run"
            " `pip install scikit-learn-intelex`, or set engine=None."
        ) from error
    try:
        return version("scikit-learn-intelex")
    except PackageNotFoundError:  # not installed by an installer
        return ""


def settings_for_sklearnex(job: Job, candidates: Iterable[int]) -> tuple[int, ...]:
    """Those of some settings that scikit-learn-intelex may fit one by one, if the search asks for it.

    It has a class for a predictor in them, and nothing in them draws random numbers: it draws other ones.
    Data on a device, and fits that callbacks follow, are scikit-learn's.
    """
    held = is_xp_array(job.X) or is_row_source(job.X) or job.contexts is not None
    if job.options.engine != "sklearnex" or held:
        return ()
    return tuple(c for c in candidates if _is_replaceable(job, job.candidates[c]))


def fit_for_sklearnex(job: Job, c: int) -> tuple[Any, Mapping[str, Any]]:
    """The estimator and parameters of a setting, with predictors of scikit-learn-intelex's classes."""
    params = {name: _in_sklearnex(clone(value, safe=False)) for name, value in job.candidates[c].items()}
    return _in_sklearnex(clone(job.estimator)), params


def _sklearnex_class_of(cls: type) -> type | None:
    """The subclass that scikit-learn-intelex has of a predictor of scikit-learn, or None.

    The class has to be scikit-learn's own; a subclass of it may override anything.
    """
    package, *rest = cls.__module__.split(".")
    public = [part for part in rest if not part.startswith("_")]
    if package != "sklearn" or not hasattr(cls, "predict") or hasattr(cls, "transform"):
        return None
    try:
        found = getattr(importlib.import_module(".".join(["sklearnex", *public])), cls.__name__, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and found is not cls and issubclass(found, cls) else None


def _in_sklearnex(thing: Any) -> Any:
    """Replace the predictors in a clone of an estimator; a value of another kind stays as it is."""
    cls = _sklearnex_class_of(type(thing))
    if cls is None:
        replace_children(thing, lambda child: _in_sklearnex(child.estimator))
        return thing
    replaced = cls()  # which may have parameters of its own
    vars(replaced).update(vars(thing))
    return replaced


def _replaceable(thing: Any) -> Iterator[Any]:
    """The estimators that `_in_sklearnex` replaces."""
    if _sklearnex_class_of(type(thing)) is not None:
        yield thing
    elif composite_class(thing) is not None:
        for child in children(thing):
            yield from _replaceable(child.estimator)


def _is_replaceable(job: Job, params: Mapping[str, Any]) -> bool:
    try:
        model = build_setting(job.estimator, params)
    except Exception:  # its fit raises it again
        return False
    found = list(_replaceable(model))
    return bool(found) and not any(map(_draws, found)) and is_deterministic(model) is True


def _draws(estimator: Any) -> bool:
    """Whether a predictor may draw numbers, seeded or not."""
    seeded = hasattr(estimator, "random_state")
    return seeded and ignores_random_state(estimator, type(estimator), Sizes()) is not True
