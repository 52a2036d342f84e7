"""Families that answer one fold after the other, by a model for each setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier

from manyfit.families.protocol._answers import Answers, Responses, Role
from manyfit.families.protocol._protocol import Family, FoldRows, Settings
from manyfit.folds import Array, Fold, FoldedData, Unsupported

# The methods that scorers of a classifier call.
CLASSIFIER_METHODS = ("predict", "predict_proba", "decision_function")


class FoldFamily(Family):
    """Answers that are scikit-learn's to rounding, from the rows of one fold after the other."""

    result: Literal["exact"] = "exact"
    reads = FoldRows(sparse=True, weights=True, device=False)

    def fit_many(self, estimator: Any, settings: Settings, folded: FoldedData) -> Iterator[Answers]:
        for i in range(folded.n_splits):
            yield self.fit_fold(estimator, settings, folded.fold(i))

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        """The answers for one fold."""
        raise NotImplementedError


@dataclass(frozen=True)
class ModelAnswers(Answers):
    """Answers that are made of a model for each setting."""

    models: Sequence[Any]  # those of refused settings are not read
    # Gives the responses of some models for rows of X.
    predictions: Callable[[Any, Sequence[Any]], Mapping[str, Array]]
    refused: Mapping[int, str] = field(default_factory=dict)
    classes: Any = None  # a list of arrays if y has several columns
    fits_made: int = 0
    n_targets: int = 1  # of regressors

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Classes of all columns of y, or targets."""
        return self.n_targets if self.classes is None else sum(map(np.size, self.classes))

    def subset(self, settings: Sequence[int]) -> ModelAnswers:
        return replace(self, models=tuple(self.models[j] for j in settings), refused={}, fits_made=0)

    def respond(self, role: Role, fold: Fold) -> Mapping[str, Array]:
        return self.predictions(fold.rows(role), self.models)


def lazy_responses(model: Any, of_all: Callable[[str], Array]) -> Responses:
    """Responses of each method that scorers read and the model has, made by `of_all` when they are read."""
    methods = CLASSIFIER_METHODS if is_classifier(model) else ("predict",)
    return Responses(**{name: partial(of_all, name) for name in methods if hasattr(model, name)})


def made_or_refused(make: Callable[[Any], Any], given: Sequence[Any]) -> tuple[list[Any], dict[int, str]]:
    """What `make` makes of each setting, None of those that it refuses; and the reasons for these."""
    found, refused = list[Any](), dict[int, str]()
    for j, one in enumerate(given):
        try:
            found.append(make(one))
        except Unsupported as why:
            found.append(None)
            refused[j] = str(why)
    return found, refused
