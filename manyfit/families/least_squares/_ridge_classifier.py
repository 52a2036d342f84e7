"""RidgeClassifier: Ridge on indicators of the classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier

from manyfit.families.least_squares._ridge import RidgeFamily
from manyfit.families.protocol import (
    Answers,
    Array,
    LinearAnswers,
    Predictions,
    Role,
    Setting,
    Settings,
    SubsetAnswers,
    register_family,
)
from manyfit.folds import Fold, FoldedData, TransformedMoments, Unsupported

# The targets are -1 and 1. Decision values that differ by less than this may tie but for rounding, which
# conjugate gradients amplify.
MIN_LEAD = 1e-9


class RidgeClassifierFamily(RidgeFamily):
    """RidgeClassifier with a direct solver, without class weights.

    Reference: sklearn.linear_model.RidgeClassifier (1.9): Ridge with a target of -1 and 1 for each class, or
    for the second of two; the class of the largest decision value.
    """

    serves = (RidgeClassifier,)

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, settings)
        if estimator.class_weight is not None:
            raise Unsupported("class_weight weighs the rows, whose moments are summed without it")

    def fit_many(self, estimator: Any, settings: Settings, folded: FoldedData) -> Iterator[LinearAnswers]:
        for i, out in enumerate(super().fit_many(estimator, settings, folded)):
            if folded.view(i).eps > np.finfo(np.float64).eps:
                raise Unsupported("labels follow the rounding of float32 where decision values nearly tie")
            yield LabelAnswers(out.linear, out.refused, out.roundings, classes=folded.classes)

    def fit_subsets(
        self, estimator: Any, setting: Setting, view: TransformedMoments, subsets: Array
    ) -> SubsetAnswers:
        raise Unsupported("labels are of one fit at a time")

    def answers_of(self, predicted: Array, single: bool, classes: Array | None) -> Answers:
        assert classes is not None
        return Predictions(_labelled(predicted, classes), classes=classes)


@dataclass(frozen=True)
class LabelAnswers(LinearAnswers):
    """Linear decision values, and the class of the largest."""

    # See `Answers`; the targets are theirs in order, or one for the second of two.
    classes: Array | None = None

    reads_moments = False

    def respond(self, role: Role, fold: Fold) -> dict[str, Array]:
        """Decision values and labels; raises `Unsupported` where rounding decides a label."""
        assert self.classes is not None
        return _labelled(self.linear(fold.rows(role)), self.classes)


def _labelled(Z: Array, classes: Array) -> dict[str, Array]:
    """Decision values, (m, n, q), as scikit-learn gives them, and labels; see `LabelAnswers.respond`."""
    if Z.shape[2] == 1:
        decisions = Z[:, :, 0]
        lead, codes = np.abs(decisions), (decisions > 0).astype(np.intp)
    else:
        decisions, codes = Z, Z.argmax(axis=2)
        best = np.partition(Z, -2, axis=2)
        lead = best[:, :, -1] - best[:, :, -2]
    if lead.size and not lead.min() > MIN_LEAD:
        raise Unsupported("decision values tie within rounding")
    return {"decision_function": decisions, "predict": classes[codes]}


register_family(RidgeClassifierFamily())
