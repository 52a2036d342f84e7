"""Lasso, ElasticNet and their relatives for several tasks: scikit-learn's solver on the moments of a fold.

Coordinate descent reads the rows only through products of columns. On the Gram matrix, or on a few rows with
the same Gram matrix, scikit-learn's solver takes the same steps as on all rows and stops at the same one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import ElasticNet, Lasso, MultiTaskElasticNet, MultiTaskLasso, enet_path

from manyfit.families.least_squares._moment_family import (
    FIT_OVERHEAD,
    MomentFamily,
    NormalEquations,
    pass_operations,
)
from manyfit.families.protocol import (
    Array,
    Cost,
    LinearAnswers,
    Setting,
    Settings,
    Shape,
    recorded_warnings,
    register_family,
    require_number,
)
from manyfit.folds import TransformedMoments, Unsupported

# The solver stops by a gap between two sums. Under this part of the targets' squares the gap is rounding.
MIN_TOL = 1e-12
# Sweeps over the coordinates that a fit takes, for estimates of cost.
SWEEPS = 30.0
# Operations that one call of scikit-learn's path takes beside its sweeps: a tenth of a millisecond.
CALL_OVERHEAD = 1e5
# Eigenvalues under this part of the largest are rounding: no row stands for them.
MIN_EIGENVALUE = 1e-14


class LassoFamily(MomentFamily):
    """Lasso, on the Gram matrix of each fold.

    Reference: sklearn.linear_model.Lasso (1.9): ``||y - X w||^2 / (2 n) + alpha ||w||_1``.
    """

    serves: tuple[type, ...] = (Lasso,)
    free = frozenset({"alpha"})
    is_joint = False  # whether targets are fitted together, in which case y has two dimensions

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.selection != "cyclic":
            raise Unsupported("selection='random' draws the order of the coordinates")
        if not isinstance(getattr(estimator, "precompute", False), bool):
            raise Unsupported("precompute is a Gram matrix of the user's own")
        require_number("tol", estimator.tol)
        if estimator.tol < MIN_TOL:
            raise Unsupported(f"tol is under {MIN_TOL:g}: rounding decides where the solver stops")
        for setting in settings:
            require_number("alpha", setting["alpha"], positive=True)
            require_number("l1_ratio", setting.get("l1_ratio", 1.0), positive=True)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        """Operations of a group on few rows and one by one: sweeps go over all rows and features."""
        n, p, q, fits = shape.n_train, shape.n_features, shape.n_targets, shape.n_splits * len(settings)
        sweep, rows = 4.0 * p * q * SWEEPS, p + q if self.is_joint else p
        shared = pass_operations(shape) + fits * (q * CALL_OVERHEAD + rows * sweep)
        return Cost(shared, fits * (FIT_OVERHEAD + n * sweep))

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        """The answers of one fold; settings that do not converge are left to scikit-learn, which warns."""
        if view.eps > np.finfo(np.float64).eps:
            raise Unsupported("scikit-learn's solver iterates in float32 here, and stops by its rounding")
        equations = NormalEquations.of(view, estimator.fit_intercept)
        solve = self.solver(estimator, equations, view.weighted.weight)
        coef = np.zeros((len(settings), *equations.xy.shape))
        refused = {}
        for j, setting in enumerate(settings):
            with recorded_warnings() as found:
                coef[j] = solve(setting)
            if found:
                refused[j] = "the solver does not converge, of which scikit-learn warns"
        return equations.answers(view, np.moveaxis(coef, 0, 1), refused, flat=not self.is_joint)

    def solver(self, estimator: Any, equations: NormalEquations, weight: float) -> Callable[[Setting], Array]:
        """From a setting to its coefficients (p, q), for rows of some weight."""
        return partial(_on_gram_matrix, estimator, equations, weight)


class ElasticNetFamily(LassoFamily):
    """ElasticNet, on the Gram matrix of each fold.

    Reference: sklearn.linear_model.ElasticNet (1.9): Lasso's objective with
    ``alpha (l1_ratio ||w||_1 + (1 - l1_ratio) ||w||^2 / 2)``.
    """

    serves = (ElasticNet,)
    free = frozenset({"alpha", "l1_ratio"})


class MultiTaskLassoFamily(LassoFamily):
    """MultiTaskLasso, on p + q rows with the Gram matrix of each fold.

    Reference: sklearn.linear_model.MultiTaskLasso (1.9): Lasso's objective with ``||W||_21`` in place of
    ``||w||_1``.
    """

    serves = (MultiTaskLasso,)
    is_joint = True

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        if view.single_target:
            raise Unsupported("y has one dimension, and several tasks need two")
        return super().fit_fold(estimator, settings, view)

    def solver(self, estimator: Any, equations: NormalEquations, weight: float) -> Callable[[Setting], Array]:
        R, Y = _compressed_rows(equations)
        return lambda setting: _path(R, Y, estimator, setting, weight).T


class MultiTaskElasticNetFamily(MultiTaskLassoFamily):
    """MultiTaskElasticNet, on p + q rows with the Gram matrix of each fold."""

    serves = (MultiTaskElasticNet,)
    free = frozenset({"alpha", "l1_ratio"})


def _on_gram_matrix(estimator: Any, equations: NormalEquations, weight: float, setting: Setting) -> Array:
    """Coefficients (p, q) of one setting; the targets have nothing in common."""
    p, q = equations.xy.shape
    gram = np.ascontiguousarray(equations.xx)
    coef = [
        _path(
            np.zeros((1, p), order="F"),
            np.sqrt(equations.yy[k : k + 1]),
            estimator,
            setting,
            weight,
            precompute=gram,
            Xy=np.ascontiguousarray(equations.xy[:, k]),
            positive=estimator.positive,
        )
        for k in range(q)
    ]
    return np.stack(coef, axis=1)


def _compressed_rows(equations: NormalEquations) -> tuple[Array, Array]:
    """Rows R (p + q, p) and Y (p + q, q) with R'R, R'Y and the diagonal of Y'Y of the equations.

    Features are scaled to one size, so that rounding keeps the digits of small ones beside large ones.
    """
    p, q = equations.xy.shape
    size = np.sqrt(np.diagonal(equations.xx))
    size[size == 0.0] = 1.0
    values, vectors = np.linalg.eigh(equations.xx / size / size[:, None])
    known = values > MIN_EIGENVALUE * values[-1]
    root = np.sqrt(np.maximum(values, 0.0))
    R, Y = np.zeros((p + q, p), order="F"), np.zeros((p + q, q), order="F")
    R[:p] = root[:, None] * vectors.T * size
    Y[:p][known] = (vectors.T @ (equations.xy / size[:, None]))[known] / root[known, None]
    Y[p:] = np.diag(np.sqrt(np.maximum(equations.yy - (Y[:p] ** 2).sum(axis=0), 0.0)))
    return R, Y


def _path(R: Array, Y: Array, estimator: Any, setting: Setting, weight: float, **params: Any) -> Array:
    """scikit-learn's coefficients of one setting, from a cold start.

    Its solver multiplies alpha by the rows that it sees, of which there are fewer than in the fold.
    """
    _, coef, _ = enet_path(
        R,
        Y,
        alphas=[setting["alpha"] * weight / len(R)],
        l1_ratio=setting.get("l1_ratio", 1.0),
        check_input=False,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        **params,
    )
    return np.asarray(coef[..., 0])


register_family(LassoFamily())
register_family(ElasticNetFamily())
register_family(MultiTaskLassoFamily())
register_family(MultiTaskElasticNetFamily())
