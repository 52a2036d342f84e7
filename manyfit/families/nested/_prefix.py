"""Ensembles that grow step by step: the first members of the largest fit are the fits of smaller settings."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from manyfit.families.nested._continued_fits import fit_continued
from manyfit.families.protocol import (
    Answers,
    Array,
    Cost,
    FoldFamily,
    ModelAnswers,
    Responses,
    Settings,
    Shape,
    lazy_responses,
    refused_warnings,
    require_number,
)
from manyfit.folds import Fold, Unsupported
from manyfit.introspection.randomness import find_random_parameter, is_deterministic


class NestedFamily(FoldFamily):
    """Estimators whose fit with one value of a parameter holds those with other values."""

    def check(self, estimator: Any, settings: Settings) -> None:
        for name in ("warm_start", "verbose", "oob_score"):
            if getattr(estimator, name, False):
                raise Unsupported(f"{name}={getattr(estimator, name)!r} is fitted by scikit-learn alone")
        self.require_repeatable(estimator)

    def require_repeatable(self, estimator: Any) -> None:
        """Raise `Unsupported` if two fits draw different random numbers."""
        if not isinstance(estimator.random_state, numbers.Integral):
            raise Unsupported(
                "each fit draws other random numbers: random_state is not an integer",
                advice=f"Set random_state of {type(estimator).__name__} to an integer: the largest fit of a "
                "split then holds the others.",
            )

    def responses(self, model: Any, X: Any, values: Sequence[Any]) -> Responses:
        """The responses of the fits with each of `values`, for rows of X."""
        raise NotImplementedError

    def answers(self, model: Any, values: Sequence[Any], fits_made: int = 1) -> ModelAnswers:
        """Answers for settings that are in one model, or in several of which the first tells the classes."""
        any_model = next(iter(model.values())) if isinstance(model, Mapping) else model
        classes = any_model.classes_ if is_classifier(any_model) else None
        return ModelAnswers(values, partial(self.responses, model), classes=classes, fits_made=fits_made)


class PrefixFamily(NestedFamily):
    """Ensembles whose fit with fewer members is the start of the fit with more of them."""

    parameter = "n_estimators"  # that says how many

    @property
    def free(self) -> frozenset[str]:  # type: ignore[override]
        """The number of members, and no other parameter."""
        return frozenset({self.parameter})

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, settings)
        self.require_counts(settings)

    def require_counts(self, settings: Settings) -> None:
        """Raise `Unsupported` if a number of members is none."""
        for setting in settings:
            value = setting[self.parameter]
            require_number(self.parameter, value, positive=True)
            if not isinstance(value, numbers.Integral):
                raise Unsupported(f"{self.parameter}={value!r} is not an integer")

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        values = [setting[self.parameter] for setting in settings]
        longest = clone(estimator).set_params(**{self.parameter: max(values)})
        return self.answers(fit_silently(longest, fold), values)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        members = [float(setting[self.parameter]) for setting in settings]
        columns = shape.n_features if shape.n_entries is None else shape.n_entries / shape.n_train
        one = shape.n_splits * shape.n_train * columns * np.log2(max(shape.n_train, 2))
        return Cost(one * max(members), one * sum(members), fits=shape.n_splits)

    def responses(self, model: Any, X: Any, values: Sequence[Any]) -> Responses:
        """See `NestedFamily`; each ensemble of the first members predicts by itself."""

        def of_all(method: str) -> Array:
            return np.stack([getattr(first_members(model, n), method)(X) for n in values])

        return lazy_responses(model, of_all)


def first_members(model: Any, n: int) -> Any:
    """A copy of a fitted ensemble with its first `n` members."""
    first = copy.copy(model)
    first.n_estimators = n
    for name in ("estimators_", "estimators_features_", "estimator_weights_", "estimator_errors_"):
        if hasattr(model, name):
            setattr(first, name, getattr(model, name)[:n])
    return first


def stack_responses(found: Sequence[Any]) -> Any:
    """Responses of several settings; a list where each is a list, with one array for each column of y."""
    return np.stack(found) if isinstance(found[0], np.ndarray) else found


def fit_silently(estimator: Any, fold: Fold, *, many_targets: bool = False) -> Any:
    """A fit on the training rows; refused if it raises or warns, so that scikit-learn's own fit does."""
    if is_classifier(estimator) and fold.y_train.ndim != 1 and not many_targets:
        raise Unsupported("y has several columns")
    weights = {} if fold.fit_weight is None else {"sample_weight": fold.fit_weight}
    with refused_warnings("a fit"):
        fit_continued(estimator, fold.X_train, fold.y_train, **weights)
    return estimator


def require_no_draws(estimator: Any) -> None:
    """Raise `Unsupported` if an estimator, or one that it holds, may draw random numbers anew in each fit."""
    if is_deterministic(estimator) is not True:
        found = find_random_parameter(estimator)
        why = "an estimator in it may draw" if found is None else f"{found.name} {found.why}: it draws"
        raise Unsupported(f"{why} random numbers anew in each fit")


def require_known_parts(estimator: Any) -> None:
    """Raise `Unsupported` if a part of an estimator is not scikit-learn's, and may draw at will."""
    for value in estimator.get_params(deep=True).values():
        known = type(value).__module__.partition(".")[0] == "sklearn"
        if hasattr(value, "fit") and not known:
            raise Unsupported(f"{type(value).__name__} may draw other random numbers in each fit")
