"""Lars and LassoLars: one path on the Gram matrix of each fold answers every end of it."""

from typing import Any

import numpy as np
from sklearn.linear_model import Lars, LassoLars, lars_path_gram

from manyfit.families.least_squares._matching_pursuit import require_independent
from manyfit.families.least_squares._moment_family import MomentFamily, NormalEquations
from manyfit.families.protocol import (
    Array,
    LinearAnswers,
    Settings,
    recorded_warnings,
    register_family,
    require_number,
)
from manyfit.folds import TransformedMoments, Unsupported

# scikit-learn takes two correlations, or penalties, for equal that differ by less.
EQUAL = float(np.finfo(np.float32).eps)


class LarsFamily(MomentFamily):
    """Lars: the coefficients after `n_nonzero_coefs` steps of the longest path.

    Reference: sklearn.linear_model.Lars (1.9), ``lars_path``: a path is a prefix of a longer one.
    """

    serves: tuple[type, ...] = (Lars,)
    free = frozenset({"n_nonzero_coefs"})

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.jitter is not None or estimator.verbose or hasattr(estimator.precompute, "__array__"):
            raise Unsupported("jitter, verbose, or a Gram matrix of the user's own")
        if not estimator.fit_path:
            raise Unsupported("fit_path=False predicts a column for one target")
        for setting in settings:
            require_number("n_nonzero_coefs", setting["n_nonzero_coefs"], positive=True)

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        equations = NormalEquations.of(view, estimator.fit_intercept)
        require_independent(equations, view)
        coef = np.stack(
            [self._along_path(estimator, settings, equations, k, view) for k in range(len(equations.yy))],
            axis=2,
        )
        return equations.answers(view, coef, {}, flat=True)

    def _along_path(
        self, estimator: Any, settings: Settings, equations: NormalEquations, k: int, view: TransformedMoments
    ) -> Array:
        """Coefficients (p, m) of target `k`."""
        steps = [int(setting["n_nonzero_coefs"]) for setting in settings]
        _, path = _path(estimator, equations, k, view, method="lar", max_iter=max(steps))
        return path[:, np.minimum(steps, path.shape[1] - 1)]


class LassoLarsFamily(LarsFamily):
    """LassoLars: the path up to the smallest `alpha`, which is linear between its steps.

    Reference: sklearn.linear_model.LassoLars (1.9): ``||y - X w||^2 / (2 n) + alpha ||w||_1``.
    """

    serves = (LassoLars,)
    free = frozenset({"alpha"})

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, [])
        for setting in settings:
            require_number("alpha", setting["alpha"])

    def _along_path(
        self, estimator: Any, settings: Settings, equations: NormalEquations, k: int, view: TransformedMoments
    ) -> Array:
        wanted = [float(setting["alpha"]) for setting in settings]
        alphas, path = _path(
            estimator, equations, k, view, method="lasso", max_iter=estimator.max_iter, alpha_min=min(wanted)
        )
        return np.stack([_at(alpha, alphas, path) for alpha in wanted], axis=1)


def _path(
    estimator: Any, equations: NormalEquations, k: int, view: TransformedMoments, **params: Any
) -> tuple[Array, Array]:
    """Penalties (s,) and coefficients (p, s) along the path of target `k`."""
    with recorded_warnings() as warned:
        alphas, _, path = lars_path_gram(
            np.ascontiguousarray(equations.xy[:, k]),
            np.ascontiguousarray(equations.xx),
            n_samples=round(view.plain.rows),
            eps=estimator.eps,
            positive=estimator.positive,
            **params,
        )
    if warned:
        raise Unsupported("the path ends early, of which scikit-learn warns")
    return np.asarray(alphas), np.asarray(path)


def _at(alpha: float, alphas: Array, path: Array) -> Array:
    """Coefficients at a penalty, as ``lars_path`` ends at it."""
    reached = np.flatnonzero(alphas <= alpha + EQUAL)
    if not reached.size:
        return path[:, -1]
    j = int(reached[0])
    if j == 0 or abs(alphas[j] - alpha) <= EQUAL:
        return path[:, j]
    share = (alphas[j - 1] - alpha) / (alphas[j - 1] - alphas[j])
    return np.asarray(path[:, j - 1] + share * (path[:, j] - path[:, j - 1]))


register_family(LarsFamily())
register_family(LassoLarsFamily())
