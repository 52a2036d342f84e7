"""Ridge and LinearRegression: one eigendecomposition a fold answers every alpha."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression, Ridge

from manyfit.families.least_squares._conjugate_gradients import solve_by_cg
from manyfit.families.least_squares._moment_family import FIT_OVERHEAD, SPECTRUM_OPERATIONS, MomentFamily
from manyfit.families.least_squares._subsets import solve_subsets
from manyfit.families.least_squares.left_out._damped_inverse import Floors
from manyfit.families.least_squares.left_out._residuals import POOR, WholeFit, leave_out, operations
from manyfit.families.protocol import (
    Answers,
    Array,
    LeavesOut,
    LeftOut,
    LinearAnswers,
    MomentSums,
    Setting,
    Settings,
    Shape,
    SolvesSubsets,
    SubsetAnswers,
    register_family,
    require_number,
)
from manyfit.folds import FoldedMatrix, Moments, Spectrum, TransformedMoments, Unsupported
from manyfit.metrics.scoring import LinearPredictors, Rounding

# Below this ratio of the extreme eigenvalues the normal equations keep too few digits.
MIN_SPECTRAL_RATIO = 1e-12
# LinearRegression cuts singular values at its `cond`; within this factor of the cut the rank is not known.
CUT_MARGIN = 4.0
# solver="svd" drops singular values under 1e-15, whatever the scale of X. If an eigenvalue and alpha are
# together larger than this, the dropped part is under 1e-13 of the solution.
MIN_DAMPED = 1e-17


class _LeastSquares(MomentFamily, LeavesOut, SolvesSubsets):
    """Residuals of left-out rows follow from the fit of all rows, for any direct solver."""

    def leaves_out(self, estimator: Any, settings: Settings, shape: Shape) -> bool:
        n, p, m, k = shape.n_train + shape.n_test, shape.n_features, shape.n_test, shape.n_splits
        columns = len({setting.get("alpha", 0.0) for setting in settings}) * shape.n_targets + 1
        direct = getattr(estimator, "solver", "auto") != "sparse_cg"
        return direct and operations(n, p, m, k, columns) < k * (SPECTRUM_OPERATIONS * p**3 + FIT_OVERHEAD)

    def leave_out(
        self, estimator: Any, settings: Settings, data: FoldedMatrix, squares: bool = False
    ) -> Iterator[LeftOut]:
        alphas = np.array([float(setting.get("alpha", 0.0)) for setting in settings])
        view, parts = data.divided_view
        whole = _whole_fit(view, parts, estimator.fit_intercept)
        return leave_out(data, whole, alphas, Floors(self._least_ratio(estimator, view), MIN_DAMPED), squares)

    def fit_subsets(
        self, estimator: Any, setting: Setting, view: TransformedMoments, subsets: Array
    ) -> SubsetAnswers:
        if view.is_sparse or getattr(estimator, "solver", "auto") == "sparse_cg":
            raise Unsupported("conjugate gradients are not solved in batches")
        alpha, least = float(setting.get("alpha", 0.0)), self._least_ratio(estimator, view)
        return solve_subsets(view, alpha, estimator.fit_intercept, subsets, (least, MIN_DAMPED))

    def _least_ratio(self, estimator: Any, view: TransformedMoments) -> float:
        """The ratio of eigenvalues under which a training set is left to scikit-learn."""
        return max(MIN_SPECTRAL_RATIO, _warned_ratio(estimator, view))


class RidgeFamily(_LeastSquares):
    """Ridge: ``(S + alpha I) coef = s`` with the centred scatter S of the fold.

    With ``S = V diag(l) V'`` the coefficients of every alpha are ``V (V's / (l + alpha))``. Sparse rows, as
    behind a OneHotEncoder, are solved by conjugate gradients, up to the same iterate as scikit-learn's.

    Reference: sklearn.linear_model.Ridge (1.9): ``||y - X w||^2 + alpha ||w||^2``, sums not divided by n.
    """

    serves = (Ridge,)
    free = frozenset({"alpha"})
    reads = MomentSums(sparse=True)

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.solver not in ("auto", "svd", "cholesky", "sparse_cg"):
            raise Unsupported(f"solver={estimator.solver!r} iterates over rows")
        _refuse_positive(estimator)
        for setting in settings:
            require_number("alpha", setting["alpha"])

    def answers_of(self, predicted: Array, single: bool, classes: Array | None) -> Answers:
        return super().answers_of(predicted, single or predicted.shape[2] == 1, classes)

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        alphas = np.array([float(setting["alpha"]) for setting in settings])
        spectrum = ridge_equations(view, estimator.fit_intercept).spectrum
        largest, smallest = spectrum.values[0] + alphas, spectrum.values[-1] + alphas
        ratio = self._least_ratio(estimator, view)
        poor = ~(smallest > np.maximum(ratio * largest, MIN_DAMPED))
        # The answers of poor settings are not read; a large alpha keeps them finite.
        safe = np.where(poor, largest + 1.0, alphas)
        along, near_stop, lost = None, *np.zeros((2, len(alphas)), dtype=bool)
        if _iterates(estimator, view):
            along, near_stop, lost = _iterate(estimator, view, safe)
        linear, rounding = solve_ridge(view, safe, estimator.fit_intercept, along)
        refused = dict.fromkeys(map(int, np.flatnonzero(near_stop)), _NEAR_STOP)
        refused.update(dict.fromkeys(map(int, np.flatnonzero(poor)), POOR))
        as_good = frozenset(map(int, np.flatnonzero(near_stop & ~lost & ~poor)))
        return LinearAnswers(linear, refused, (rounding,), flat=True, as_good=as_good)


def _warned_ratio(estimator: Any, view: TransformedMoments) -> float:
    """The ratio of eigenvalues under which a Cholesky solver may warn of an ill-conditioned matrix.

    It warns if the reciprocal condition in the 1-norm is less than the machine epsilon of X. That is at least
    the ratio of the eigenvalues divided by the number of features.
    """
    return 0.0 if estimator.solver == "svd" else view.n_features * view.eps


class LinearRegressionFamily(_LeastSquares):
    """LinearRegression at full rank, from the same equations with ``alpha = 0``.

    scikit-learn cuts singular values under its ``cond``; if a cut is near, the fold is left to it.
    """

    serves = (LinearRegression,)
    free = frozenset[str]()

    def check(self, estimator: Any, settings: Settings) -> None:
        _refuse_positive(estimator)

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        spectrum = ridge_equations(view, estimator.fit_intercept).spectrum
        floor = self._least_ratio(estimator, view) * spectrum.values[0]
        if not spectrum.values[-1] > floor:
            raise Unsupported("the columns are (nearly) linearly dependent: the rank decides")
        # All settings have the same fit.
        linear, rounding = solve_ridge(view, np.zeros(len(settings)), estimator.fit_intercept)
        return LinearAnswers(linear, {}, (rounding,))

    def _least_ratio(self, estimator: Any, view: TransformedMoments) -> float:
        # cond is ``tol`` from scikit-learn 1.9 and max(n, p) eps before it.
        cond = max(getattr(estimator, "tol", 0.0), max(view.plain.rows, view.n_features) * view.eps)
        return float(max(MIN_SPECTRAL_RATIO, (CUT_MARGIN * cond) ** 2))


def _refuse_positive(estimator: Any) -> None:
    if estimator.positive:
        raise Unsupported("positive=True is a constrained problem")


class RidgeEquations(NamedTuple):
    """Spectrum and right-hand side of the normal equations about a point, the mean or zero.

    `offset` is the origin of the view less that point.
    """

    spectrum: Spectrum
    rhs: Array
    offset: Array


def ridge_equations(view: TransformedMoments, fit_intercept: bool) -> RidgeEquations:
    """The equations of a fold; raises `Unsupported` if no feature is left."""
    moments = view.weighted
    if view.n_features == 0:
        raise Unsupported(_NO_FEATURES)
    if fit_intercept:
        return RidgeEquations(moments.spectrum, moments.xy, -moments.x_offset)
    return RidgeEquations(moments.raw_spectrum, moments.raw_xy, moments.x_origin)


def _whole_fit(view: TransformedMoments, parts: Sequence[Moments], fit_intercept: bool) -> WholeFit:
    """The equations of all rows; raises `Unsupported` if no feature is left."""
    moments, plain = view.weighted, view.plain
    if view.n_features == 0:
        raise Unsupported(_NO_FEATURES)
    if not moments.weight > 0.0:
        raise Unsupported("the weights add up to nothing")
    y_size = np.sqrt(np.maximum(plain.yy, 0.0) / plain.weight) + np.abs(plain.y_mean)
    if fit_intercept:
        return WholeFit(
            moments.xx, lambda: moments.spectrum, moments.xy, view.origin, -moments.x_offset,
            moments.y_mean, moments.weight, y_size, parts,
        )  # fmt: skip
    return WholeFit(
        moments.raw_xx, lambda: moments.raw_spectrum, moments.raw_xy, view.origin, moments.x_origin,
        np.zeros_like(moments.y_mean), 0.0, y_size, parts,
    )  # fmt: skip


def _iterates(estimator: Any, view: TransformedMoments) -> bool:
    """Whether scikit-learn's solver is conjugate gradients; raises `Unsupported` for one that it refuses."""
    solver = estimator.solver
    if view.is_sparse and (solver == "svd" or (solver == "cholesky" and estimator.fit_intercept)):
        raise Unsupported(f"solver={solver!r} does not take sparse rows")
    return bool(solver == "sparse_cg" or (solver == "auto" and view.is_sparse))


def _iterate(estimator: Any, view: TransformedMoments, alphas: Array) -> tuple[Array, Array, Array]:
    """Iterates along the eigenvectors, which are near a stop, and which are lost; see `solve_by_cg`."""
    if view.n_features > view.plain.rows:
        raise Unsupported("there are more features than rows, for which scikit-learn solves for the rows")
    if not estimator.fit_intercept:
        raise Unsupported("conjugate gradients without an intercept amplify rounding")
    if view.eps > np.finfo(np.float64).eps:
        raise Unsupported("conjugate gradients amplify the rounding of float32")
    spectrum, rhs, _ = ridge_equations(view, fit_intercept=True)
    moments = view.weighted
    sizes = np.sqrt(moments.weight * (moments.variances + moments.x_mean**2))
    found, near_stop, lost = solve_by_cg(moments.xx, rhs, alphas, estimator.tol, estimator.max_iter, sizes)
    p = view.n_features
    return spectrum.onto_axes(found.reshape(p, -1)).reshape(found.shape), near_stop, lost


def solve_ridge(
    view: TransformedMoments, alphas: Array, fit_intercept: bool, along: Array | None = None
) -> tuple[LinearPredictors, Rounding]:
    """Ridge solutions for all alphas, on the columns of X; `along`: other solutions, along the eigenvectors.

    Along an eigenvector the coefficient is off by about ``eps l_max |coef| / (l + alpha)``.
    """
    spectrum, rhs, offset = ridge_equations(view, fit_intercept)
    p, q, m = view.n_features, rhs.shape[1], len(alphas)
    damped = spectrum.values[:, None] + alphas
    if along is None:
        along = spectrum.onto_axes(rhs)[:, None, :] / damped[:, :, None]
    # The axes are mapped to the columns of X once, for the solutions and their errors.
    axes = view.to_X(np.eye(p) if spectrum.vectors is None else spectrum.vectors)
    axes_at_origin = spectrum.onto_axes(offset)
    flat = along.reshape(p, m * q)
    at_origin = (axes_at_origin @ flat).reshape(m, q)
    if fit_intercept:
        at_origin += view.weighted.y_mean
    linear = LinearPredictors((axes @ flat).reshape(-1, m, q), at_origin, view.origin)
    noise = np.finfo(np.float64).eps * spectrum.values[0] / damped
    return linear, Rounding(view.origin, axes, axes_at_origin, noise, np.sqrt((along**2).sum(axis=0)))


_NEAR_STOP = "rounding decides where conjugate gradients stop"
_NO_FEATURES = "no features are left"


register_family(RidgeFamily())
register_family(LinearRegressionFamily())
