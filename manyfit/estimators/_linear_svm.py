"""LinearSVC and LinearSVR with squared losses, all C at once."""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.estimators._family import Cost, Shape, register_family
from manyfit.estimators._lbfgs import LBFGS
from manyfit.estimators._linked import Decisions, IdentityLink, LinkedAnswers, linked_answers
from manyfit.estimators._losses import Loss, SquaredEpsilonInsensitive, SquaredHinge
from manyfit.estimators._objective import Intercept, Rowwise
from manyfit.estimators._path import Fitted, Model, fit_path, pass_cost
from manyfit.folds import PassData, Unsupported, require_classes
from manyfit.metrics import LinearPredictors


class LinearSVCFamily:
    """LinearSVC: ``C sum_i s_i max(0, 1 - t_i z_i)^2 + ||w||^2 / 2``, the intercept penalised as a weight.

    References
    ----------
    sklearn.svm.LinearSVC (1.9) and liblinear: several classes one against the rest; converged where the norm
    of the gradient is at most ``tol min(n_pos, n_neg) / n`` of that at zero.
    """

    serves = (LinearSVC,)
    free = frozenset({"C"})
    result: Literal["converged"] = "converged"
    needs: Literal["passes"] = "passes"

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        """See `Family`."""
        if estimator.loss != "squared_hinge" or estimator.penalty != "l2":
            raise Unsupported("only the squared hinge loss with the l2 penalty is smooth")
        if estimator.multi_class != "ovr" or estimator.class_weight is not None:
            raise Unsupported("class weights and multi_class='crammer_singer' are not shared")
        _check_svm(estimator, settings)

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        """See `Family`."""
        return pass_cost(len(settings), shape)

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: PassData
    ) -> Iterator[LinkedAnswers]:
        """See `Family`."""
        classes, codes = np.unique(folded.y, return_inverse=True)
        require_classes(codes, len(classes), folded.groups)
        fits = []
        for k in range(len(classes)) if len(classes) > 2 else [1]:
            # One problem a class: nothing couples them.
            own = codes == k
            targets = np.where(own, 1.0, -1.0)[:, None]
            share = min(own.mean(), 1.0 - own.mean())
            model = _model(estimator, settings, folded, SquaredHinge(), targets, float(share))
            fits.append(fit_path(folded, model, LBFGS())[0])
        yield from linked_answers(
            [_side_by_side(of_split) for of_split in zip(*fits, strict=True)], Decisions(classes)
        )


class LinearSVRFamily:
    """LinearSVR: ``C sum_i s_i max(0, |z_i - y_i| - epsilon)^2 + ||w||^2 / 2``, the intercept penalised.

    References
    ----------
    sklearn.svm.LinearSVR (1.9) and liblinear.
    """

    serves = (LinearSVR,)
    free = frozenset({"C"})
    result: Literal["converged"] = "converged"
    needs: Literal["passes"] = "passes"

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        """See `Family`."""
        if estimator.loss != "squared_epsilon_insensitive":
            raise Unsupported("only the squared epsilon-insensitive loss is smooth")
        _check_svm(estimator, settings)

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        """See `Family`."""
        return pass_cost(len(settings), shape)

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: PassData
    ) -> Iterator[LinkedAnswers]:
        """See `Family`."""
        y = np.asarray(folded.y, dtype=np.float64)
        loss = SquaredEpsilonInsensitive(float(estimator.epsilon))
        model = _model(estimator, settings, folded, loss, y[:, None], 1.0)
        yield from linked_answers(fit_path(folded, model, LBFGS())[0], IdentityLink())


def _side_by_side(parts: Sequence[Fitted]) -> Fitted:
    """The same settings with one output each, as settings with several."""
    linear = [part.linear for part in parts]
    return Fitted(
        LinearPredictors(
            np.concatenate([one.coef for one in linear], axis=2),
            np.concatenate([one.at_origin for one in linear], axis=1),
            linear[0].origin,
        ),
        np.logical_and.reduce([part.converged for part in parts]),
    )


def _check_svm(estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
    if estimator.fit_intercept and estimator.intercept_scaling != 1:
        raise Unsupported("intercept_scaling changes the penalty of the intercept")
    if estimator.verbose:
        raise Unsupported("verbose follows single fits")
    for setting in settings:
        C = setting["C"]
        if not isinstance(C, Real) or isinstance(C, bool) or not 0 < float(C) < np.inf:
            raise Unsupported(f"C={C!r} is not one finite number above 0")


def _model(
    estimator: Any,
    settings: Sequence[Mapping[str, Any]],
    data: PassData,
    loss: Loss,
    targets: Any,
    share: float,
) -> Model:
    C = np.array([float(setting["C"]) for setting in settings])
    intercept: Intercept = "penalised" if estimator.fit_intercept else "none"
    return Model(
        Rowwise(loss, targets, data.weight),
        lambda total: 1.0 / (C * total),
        intercept,
        float(estimator.tol) * share,
        relative=True,
    )


LINEAR_SVC = register_family(LinearSVCFamily())
LINEAR_SVR = register_family(LinearSVRFamily())
