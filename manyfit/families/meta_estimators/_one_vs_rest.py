"""OneVsRestClassifier: one problem of two classes for each class, on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.linear_model import RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier

from manyfit.arrays import array_namespace
from manyfit.families.meta_estimators._wrapped import WrappedFamily, register_wrapper
from manyfit.families.protocol import Answers, Array, Cost, Iterations, Settings, Shape
from manyfit.families.smooth._cost import FIXED, FIXED_CODES
from manyfit.families.smooth._glm_answers import Decisions, GLMAnswers, Link, Probabilities, linked_answers
from manyfit.families.smooth.solver._losses import expit
from manyfit.families.smooth.solver._solution import PathSolution
from manyfit.folds import FoldedData, PassData, Unsupported, require_classes


@register_wrapper
class OneVsRestFamily(WrappedFamily):
    """OneVsRestClassifier: the answers of its estimator for each class against the others.

    RidgeClassifier fits the same problems by itself. An estimator that iterates has its answers on labels 1
    and 0, side by side.

    Reference: sklearn.multiclass.OneVsRestClassifier (1.9): labels of two classes are one problem; the class
    of the largest decision value; probabilities of each class, divided by their sum.
    """

    wraps = OneVsRestClassifier
    holds = "estimator"
    takes_weights = False

    def check_wrapper(self) -> None:
        linear = isinstance(self.reads, Iterations) or self.inner.serves == (RidgeClassifier,)
        if not (linear and all(is_classifier(cls()) for cls in self.inner.serves)):
            raise Unsupported(f"{self.name} is shared around linear classifiers")
        if self.wrapper.verbose:
            raise Unsupported("verbose follows single fits")

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        if not isinstance(self.reads, Iterations):
            # scikit-learn solves for each class anew.
            one = self.inner.cost(estimator, settings, shape)
            return replace(one, individual=shape.n_classes * one.individual)
        n = shape.n_classes if shape.n_classes > 2 else 1
        one = self.inner.cost(estimator, settings, replace(shape, n_classes=min(2, shape.n_classes)))
        fixed = FIXED if shape.row_entries is None else FIXED_CODES  # a search is planned once
        return Cost(n * one.shared - (n - 1) * fixed, n * one.individual)

    def fit_many(
        self, estimator: Any, settings: Settings, folded: FoldedData | PassData
    ) -> Iterator[Answers]:
        if not isinstance(folded, PassData):
            yield from self.inner.fit_many(estimator, settings, folded)
            return
        classes, codes = np.unique(folded.targets, return_inverse=True)
        require_classes(codes, len(classes), folded.groups)
        folded = folded.condensed()  # once for all classes
        own = [(codes == k).astype(np.intp) for k in (range(len(classes)) if len(classes) > 2 else [1])]
        fits = [self.inner.fit_many(estimator, settings, replace(folded, y=y)) for y in own]
        for answers in zip(*fits, strict=True):
            yield from linked_answers([_side_by_side(answers)], _link(answers[0], classes))


class NormedProbabilities(Decisions):
    """Decision values, the class of the largest, and the probabilities of each class over their sum.

    Reference: sklearn.multiclass.OneVsRestClassifier (1.9): ``predict_proba``.
    """

    def responses(self, Z: Any) -> dict[str, Any]:
        xp, out = array_namespace(Z), super().responses(Z)
        with np.errstate(over="ignore"):  # for libraries that compute with NumPy
            P = expit(xp.asarray(Z, copy=True))
        total = xp.sum(P, axis=2, keepdims=True)
        P /= xp.where(total > 0.0, total, 1.0)
        return {**out, "predict_proba": P}


def _link(one: Any, classes: Array) -> Link:
    """The responses of all classes together, from the answers for one of them."""
    link = one.link if type(one) is GLMAnswers else None
    if type(link) is Decisions:
        return Decisions(classes, link.keeps_single)
    if type(link) is not Probabilities:
        raise Unsupported("OneVsRestClassifier is shared around linear classifiers")
    of_all = Probabilities if len(classes) == 2 else NormedProbabilities
    return of_all(classes, link.keeps_single)


def _side_by_side(answers: Sequence[Any]) -> PathSolution:
    return PathSolution.side_by_side([one.fitted for one in answers])
