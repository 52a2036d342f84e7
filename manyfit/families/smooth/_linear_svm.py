"""LinearSVC and LinearSVR with squared losses, all C at once."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.families.protocol import (
    Array,
    Cost,
    Settings,
    Shape,
    register_family,
    require_number,
)
from manyfit.families.smooth._class_weights import class_weights
from manyfit.families.smooth._cost import IteratingFamily, pass_cost
from manyfit.families.smooth._glm_answers import Decisions, GLMAnswers, Identity, linked_answers
from manyfit.families.smooth._liblinear import (
    ITERATIONS,
    liblinear_model,
    rarest_share,
    require_usual_intercept,
)
from manyfit.families.smooth.solver._coarse_to_fine import fit_path
from manyfit.families.smooth.solver._losses import SquaredEpsilonInsensitive, SquaredHinge
from manyfit.families.smooth.solver._objective import RowLoss
from manyfit.families.smooth.solver._solution import PathSolution
from manyfit.folds import PassData, Unsupported, require_classes


class _SquaredLossFamily(IteratingFamily):
    """Estimators of liblinear with a squared loss, whose Newton's method the gradient stops."""

    free = frozenset({"C"})

    def check(self, estimator: Any, settings: Settings) -> None:
        require_usual_intercept(estimator)
        if estimator.verbose:
            raise Unsupported("verbose follows single fits")
        for setting in settings:
            require_number("C", setting["C"], positive=True)

    def other_stopping_rule(self, estimator: Any, shape: Shape) -> str | None:
        dual = shape.n_train < shape.n_features if estimator.dual == "auto" else estimator.dual
        if dual:
            return (
                f"dual={estimator.dual!r} solves the dual problem here, and does not stop at a small "
                "gradient; dual=False does, at the same optimum"
            )
        return None

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        return pass_cost(len(settings), shape, coupled=False)


class LinearSVCFamily(_SquaredLossFamily):
    """LinearSVC: ``C sum_i s_i max(0, 1 - t_i z_i)^2 + ||w||^2 / 2``, the intercept penalised as a weight.

    Reference: sklearn.svm.LinearSVC (1.9) and liblinear: several classes one against the rest; converged
    where the length of the gradient is at most ``tol min(n_pos, n_neg) / n`` of that at zero.
    """

    serves = (LinearSVC,)

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.loss != "squared_hinge" or estimator.penalty != "l2":
            raise Unsupported("only the squared hinge loss with the l2 penalty is smooth")
        if estimator.multi_class != "ovr":
            raise Unsupported("multi_class='crammer_singer' has an objective of its own")
        super().check(estimator, settings)

    def fit_many(self, estimator: Any, settings: Settings, folded: PassData) -> Iterator[GLMAnswers]:
        classes, codes = np.unique(folded.targets, return_inverse=True)
        n_classes = len(classes)
        require_classes(codes, n_classes, folded.groups)
        weights = class_weights(estimator.class_weight, classes, codes, folded)
        folded = folded.condensed()  # once for all classes
        fits = []
        for k in range(n_classes) if n_classes > 2 else [1]:
            # One problem for each class: nothing couples them.
            own = (codes == k).astype(np.intp)
            rowwise = RowLoss(
                SquaredHinge(),
                2.0 * own[None] - 1.0,
                folded.weight,
                None if weights is None else _one_against_the_rest(weights, k),
                None if weights is None else own,
            )
            # Each row of either class has a loss of one at the start.
            rarest, most = rarest_share(own, folded), min(estimator.max_iter, ITERATIONS)
            fits.append(fit_path(folded, liblinear_model(estimator, settings, rowwise, most, rarest)))
        fitted = map(PathSolution.side_by_side, zip(*fits, strict=True))
        yield from linked_answers(fitted, Decisions(classes, keeps_single=False))


class LinearSVRFamily(_SquaredLossFamily):
    """LinearSVR: ``C sum_i s_i max(0, |z_i - y_i| - epsilon)^2 + ||w||^2 / 2``, the intercept penalised.

    Reference: sklearn.svm.LinearSVR (1.9) and liblinear.
    """

    serves = (LinearSVR,)

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.loss != "squared_epsilon_insensitive":
            raise Unsupported("only the squared epsilon-insensitive loss is smooth")
        require_number("epsilon", estimator.epsilon)
        super().check(estimator, settings)

    def fit_many(self, estimator: Any, settings: Settings, folded: PassData) -> Iterator[GLMAnswers]:
        y = np.asarray(folded.targets, dtype=np.float64)
        rowwise = RowLoss(SquaredEpsilonInsensitive(float(estimator.epsilon)), y[None], folded.weight)
        most, loss = min(estimator.max_iter, ITERATIONS), float(np.mean(y**2))
        model = liblinear_model(estimator, settings, rowwise, most, loss=loss)
        yield from linked_answers(fit_path(folded, model), Identity(keeps_single=False))


def _one_against_the_rest(weights: Array, k: int) -> Array:
    """Weights of the rest and of class `k`, (n_splits, 2): with several classes the rest counts once."""
    if weights.shape[1] == 2:
        return weights
    return np.stack([np.ones(len(weights)), weights[:, k]], axis=1)


register_family(LinearSVCFamily())
register_family(LinearSVRFamily())
