"""Boosting on histograms: the rows of a fold are binned once for all settings that bins do not depend on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from manyfit.families.nested._prefix import PrefixFamily, fit_silently
from manyfit.families.protocol import Answers, Cost, ModelAnswers, Responses, Settings, Shape
from manyfit.folds import Fold, Unsupported
from manyfit.introspection.structural_key import structural_key

# Bins take about as long as so many trees. Any number above zero lets settings share them.
_TREES = 8.0


class BinnedFamily(PrefixFamily):
    """Ensembles of trees on binned rows, with one fit for each setting of the trees on each split."""

    # Parameters that change trees and not the bins; settings differ in them and in the number of trees.
    of_trees: frozenset[str]

    @property
    def free(self) -> frozenset[str]:  # type: ignore[override]
        """The number of trees, and what else bins do not depend on."""
        return self.of_trees | {self.parameter}

    def makes_bins(self, estimator: Any) -> bool:
        """Whether fits of an estimator read bins that others can read, too."""
        return True

    def keep_bins(self, estimator: Any, kept: dict[str, Any]) -> AbstractContextManager[None]:
        """Let a fit take its bins from `kept`, or put them there."""
        raise NotImplementedError

    def first_responses(self, model: Any, X: Any, values: Sequence[int]) -> Responses:
        """The responses of one model with its first trees; see `NestedFamily.responses`."""
        raise NotImplementedError

    def finished(self, model: Any, fold: Fold) -> Any:
        """A model that is fitted on a fold, ready to predict."""
        return model

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        one = super().cost(estimator, settings, shape)
        longest = [max(settings[j][self.parameter] for j in nest) for nest in self._nests(settings)]
        tree, bins = one.shared / max(longest), _TREES if self.makes_bins(estimator) else 0.0
        # Fits that have nothing in common are no gain.
        shared = 1.001 * tree * (sum(longest) + bins)
        individual = one.individual + tree * bins * len(settings)
        return replace(one, shared=shared, individual=individual, fits=one.fits * len(longest))

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        kept: dict[str, Any] = {}
        models, refused = list[Any](), dict[int, str]()
        places, makes_bins = np.empty((len(settings), 2), dtype=int), self.makes_bins(estimator)
        for k, nest in enumerate(self._nests(settings)):
            sizes = [settings[j][self.parameter] for j in nest]
            places[nest, 0], places[nest, 1] = k, sizes
            model = clone(estimator).set_params(**{**settings[nest[0]], self.parameter: max(sizes)})
            try:
                with self.keep_bins(model, kept if makes_bins else {}):
                    models.append(self.finished(fit_silently(model, fold), fold))
            except Unsupported as why:
                models.append(None)
                refused.update(dict.fromkeys(nest, str(why)))
                kept.clear()  # with these bins the next fit might not warn
        fitted = [model for model in models if model is not None]
        if not fitted:
            raise Unsupported(next(iter(refused.values())))
        classes = fitted[0].classes_ if is_classifier(estimator) else None
        values = [*map(tuple, places.tolist())]
        return ModelAnswers(values, partial(self.responses, models), refused, classes, len(fitted))

    def responses(self, model: Sequence[Any], X: Any, values: Sequence[tuple[int, int]]) -> Responses:
        """See `NestedFamily`; `model` are models, and `values` the model and number of trees of a setting."""
        used = sorted({k for k, _ in values})
        found = {k: self.first_responses(model[k], X, [n for own, n in values if own == k]) for k in used}
        places = np.argsort(np.argsort([k for k, _ in values], kind="stable"))

        def of_all(method: str) -> Any:
            return np.concatenate([found[k][method] for k in used])[places]

        return Responses(**{name: partial(of_all, name) for name in found[used[0]]})

    def _nests(self, settings: Settings) -> list[list[int]]:
        """The settings that differ in the number of trees only."""
        nests: dict[Any, list[int]] = {}
        for j, setting in enumerate(settings):
            key = structural_key({name: setting[name] for name in sorted(setting) if name != self.parameter})
            nests.setdefault(key, []).append(j)
        return list(nests.values())
