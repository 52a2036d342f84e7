"""LogisticRegression with an l2 penalty, all C at once."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from manyfit.families.protocol import (
    Cost,
    Settings,
    Shape,
    register_family,
    require_number,
)
from manyfit.families.smooth._class_weights import class_weights
from manyfit.families.smooth._cost import IteratingFamily, pass_cost
from manyfit.families.smooth._glm_answers import GLMAnswers, Probabilities, linked_answers
from manyfit.families.smooth._l1 import fit_l1_path, l1_cost
from manyfit.families.smooth._liblinear import (
    ITERATIONS,
    liblinear_model,
    rarest_share,
    require_usual_intercept,
)
from manyfit.families.smooth.solver._coarse_to_fine import Model, fit_path
from manyfit.families.smooth.solver._losses import HalfBinomial, HalfMultinomial, Loss
from manyfit.families.smooth.solver._objective import RowLoss
from manyfit.families.smooth.solver._trial import sklearn_stopping
from manyfit.folds import PassData, Unsupported, require_classes

# Solvers that minimise the same objective.
SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")
# Newton's method of liblinear takes fewer iterations than this where L-BFGS takes hundreds of steps.
NEWTON_ENOUGH = 100


class LogisticFamily(IteratingFamily):
    """LogisticRegression: ``C sum_i s_i loss_i + ||w||^2 / 2``, the intercept free.

    ``solver="liblinear"`` penalises the intercept as a weight, and stops as `LinearSVCFamily` says; its l1
    penalty is ``||w||_1``.

    Reference: sklearn.linear_model.LogisticRegression (1.9): binomial loss for two classes, multinomial for
    more.
    """

    serves = (LogisticRegression,)
    free = frozenset({"C"})

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.solver == "liblinear":
            require_usual_intercept(estimator)
        elif estimator.solver not in SOLVERS:
            raise Unsupported(f"solver={estimator.solver!r} has an objective of its own")
        penalty = _penalty(estimator)
        if penalty == "l1" and estimator.solver == "liblinear":
            if not isinstance(estimator.random_state, Integral):
                raise Unsupported("liblinear draws random numbers for an l1 penalty without a random_state")
        elif penalty != "l2":
            raise Unsupported("only the l2 penalty is shared, and l1 for solver='liblinear'")
        if estimator.dual or getattr(estimator, "multi_class", "deprecated") not in ("deprecated", "auto"):
            raise Unsupported("dual=True and multi_class are not shared")
        if estimator.warm_start or estimator.verbose:
            raise Unsupported("warm_start and verbose follow single fits")
        for setting in settings:
            require_number("C", setting["C"], positive=True)

    def other_stopping_rule(self, estimator: Any, shape: Shape) -> str | None:
        if estimator.solver in ("sag", "saga"):
            return f"solver={estimator.solver!r} stops where coefficients change little, not by the gradient"
        return None

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        if _penalty(estimator) == "l1":
            return l1_cost(len(settings), shape)
        return pass_cost(len(settings), shape, coupled=estimator.solver != "liblinear")

    def fit_many(self, estimator: Any, settings: Settings, folded: PassData) -> Iterator[GLMAnswers]:
        classes, codes = np.unique(folded.targets, return_inverse=True)
        require_classes(codes, len(classes), folded.groups)
        loss: Loss = HalfBinomial() if len(classes) == 2 else HalfMultinomial(len(classes))
        targets = codes == (np.arange(len(classes)) if len(classes) > 2 else np.array([1]))[:, None]
        weights = class_weights(estimator.class_weight, classes, codes, folded)
        if estimator.solver == "liblinear" and len(classes) > 2:
            raise Unsupported("solver='liblinear' has two classes")
        if _penalty(estimator) == "l1":
            fitted = fit_l1_path(estimator, settings, folded, codes, weights)
            yield from linked_answers(fitted, Probabilities(classes, keeps_single=False))
            return
        rowwise = RowLoss(
            loss, targets.astype(np.float64), folded.weight, weights, None if weights is None else codes
        )
        if estimator.solver == "liblinear":
            most = ITERATIONS if estimator.max_iter >= NEWTON_ENOUGH else estimator.max_iter
            model = liblinear_model(estimator, settings, rowwise, most, rarest_share(codes, folded))
            yield from linked_answers(fit_path(folded, model), Probabilities(classes, keeps_single=False))
            return
        C = np.array([float(setting["C"]) for setting in settings])
        model = Model(
            rowwise,
            lambda total: 1.0 / (C * total),
            "free" if estimator.fit_intercept else "none",
            float(estimator.tol),
            # The loss at the start, where no class is more likely than another.
            stopping=sklearn_stopping(estimator, folded.X, float(np.log(len(classes)))),
        )
        yield from linked_answers(fit_path(folded, model), Probabilities(classes))


def _penalty(estimator: Any) -> str | None:
    """The penalty: by ``l1_ratio`` from scikit-learn 1.8, by ``penalty`` before it."""
    penalty = getattr(estimator, "penalty", "deprecated")
    if penalty == "deprecated":
        return {0: "l2", None: "l2", 1: "l1"}.get(estimator.l1_ratio, "elasticnet")
    return None if penalty is None else str(penalty)


register_family(LogisticFamily())
