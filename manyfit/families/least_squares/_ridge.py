"""Ridge and LinearRegression: one eigendecomposition a fold answers every alpha."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, Ridge

from manyfit.families._answers import LinearAnswers
from manyfit.families._parameter_values import require_number
from manyfit.families._protocol import Cost, Family, MomentSums, Shape
from manyfit.families._registry import register_family
from manyfit.folds import FoldedData, Spectrum, TransformedMoments, Unsupported
from manyfit.metrics import LinearPredictors, Rounding

Array = NDArray[Any]

# Below this ratio of the extreme eigenvalues the normal equations keep too few digits.
MIN_SPECTRAL_RATIO = 1e-12
# LinearRegression cuts singular values at its `cond`; within this factor of the cut the rank is not known.
CUT_MARGIN = 4.0
# solver="svd" drops singular values under 1e-15, whatever the scale of X. If an eigenvalue and alpha are
# together larger than this, the dropped part is under 1e-13 of the solution.
MIN_DAMPED = 1e-17
# Operations of a millisecond, which validation, copies and Python of one scikit-learn fit and score take.
FIT_OVERHEAD = 1e6


class RidgeFamily(Family):
    """Ridge with a direct solver: ``(S + alpha I) coef = s`` with the centred scatter S of the fold.

    With ``S = V diag(l) V'`` the coefficients of every alpha are ``V (V's / (l + alpha))``.

    References
    ----------
    sklearn.linear_model.Ridge (1.9): ``||y - X w||^2 + alpha ||w||^2``, sums not divided by n.
    """

    serves = (Ridge,)
    free = frozenset({"alpha"})
    result: Literal["exact"] = "exact"
    reads = MomentSums()

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        if estimator.solver not in ("auto", "svd", "cholesky"):
            raise Unsupported(f"solver={estimator.solver!r} iterates; only direct solvers are shared")
        _refuse_positive(estimator)
        for setting in settings:
            require_number("alpha", setting["alpha"])

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        return moment_cost(len(settings), shape)

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: FoldedData
    ) -> Iterator[LinearAnswers]:
        alphas = np.array([float(setting["alpha"]) for setting in settings])
        for i in range(folded.n_splits):
            view = folded.view(i)
            spectrum = _equations(view, estimator.fit_intercept).spectrum
            largest, smallest = spectrum.values[0] + alphas, spectrum.values[-1] + alphas
            ratio = max(MIN_SPECTRAL_RATIO, _warned_ratio(estimator, view))
            poor = ~(smallest > np.maximum(ratio * largest, MIN_DAMPED))
            # The answers of poor settings are not read; a large alpha keeps them finite.
            safe = np.where(poor, largest + 1.0, alphas)
            linear, rounding = _solve(view, safe, estimator.fit_intercept)
            refused = dict.fromkeys(map(int, np.flatnonzero(poor)), _POOR)
            yield LinearAnswers(linear, refused, (rounding,), flat=True)


def _warned_ratio(estimator: Any, view: TransformedMoments) -> float:
    """The ratio of eigenvalues under which a Cholesky solver may warn of an ill-conditioned matrix.

    It warns if the reciprocal condition in the 1-norm is less than the machine epsilon of X. That is at least
    the ratio of the eigenvalues divided by the number of features.
    """
    return 0.0 if estimator.solver == "svd" else view.n_features * view.eps


class LinearRegressionFamily(Family):
    """LinearRegression at full rank, from the same equations with ``alpha = 0``.

    scikit-learn cuts singular values under its ``cond``; if a cut is near, the fold is left to it.
    """

    serves = (LinearRegression,)
    free = frozenset[str]()
    result: Literal["exact"] = "exact"
    reads = MomentSums()

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        _refuse_positive(estimator)

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        return moment_cost(len(settings), shape)

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: FoldedData
    ) -> Iterator[LinearAnswers]:
        for i in range(folded.n_splits):
            view = folded.view(i)
            spectrum = _equations(view, estimator.fit_intercept).spectrum
            # cond is ``tol`` from scikit-learn 1.9 and max(n, p) eps before it.
            cond = max(getattr(estimator, "tol", 0.0), max(view.plain.rows, view.n_features) * view.eps)
            floor = max(MIN_SPECTRAL_RATIO, (CUT_MARGIN * cond) ** 2) * spectrum.values[0]
            if not spectrum.values[-1] > floor:
                raise Unsupported("the columns are (nearly) linearly dependent: the rank decides")
            # All settings have the same fit.
            linear, rounding = _solve(view, np.zeros(len(settings)), estimator.fit_intercept)
            yield LinearAnswers(linear, {}, (rounding,))


def _refuse_positive(estimator: Any) -> None:
    if estimator.positive:
        raise Unsupported("positive=True is a constrained problem")


class _Equations(NamedTuple):
    """Spectrum and right-hand side of the normal equations about a point, the mean or zero.

    `offset` is the origin of the view less that point.
    """

    spectrum: Spectrum
    rhs: Array
    offset: Array


def _equations(view: TransformedMoments, fit_intercept: bool) -> _Equations:
    moments = view.weighted
    if view.n_features == 0:
        raise Unsupported("no features are left")
    if fit_intercept:
        return _Equations(moments.spectrum, moments.xy, -moments.x_offset)
    return _Equations(moments.raw_spectrum, moments.raw_xy, moments.x_origin)


def _solve(view: TransformedMoments, alphas: Array, fit_intercept: bool) -> tuple[LinearPredictors, Rounding]:
    """Ridge solutions for all alphas, on the columns of X.

    Along an eigenvector the coefficient is off by about ``eps l_max |coef| / (l + alpha)``.
    """
    spectrum, rhs, offset = _equations(view, fit_intercept)
    p, q, m = view.n_features, rhs.shape[1], len(alphas)
    damped = spectrum.values[:, None] + alphas
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


_POOR = "the normal equations are (nearly) singular"


def moment_cost(n_settings: int, shape: Shape) -> Cost:
    """Operations of a least-squares group by moments and one by one.

    By moments: one pass, then one eigendecomposition a fold (about ``10 p^3``, measured against a
    matrix product). One by one: a Gram matrix on the shorter side and its factorisation, each fit.
    """
    n, p, k = shape.n_train, shape.n_features, shape.n_splits
    d, short, long = p + shape.n_targets, min(n, p), max(n, p)
    shared = n * d**2 * k / max(k - 1, 1) + k * (10.0 * p**3 + 4.0 * n_settings * p**2 * shape.n_targets)
    individual = n_settings * k * (FIT_OVERHEAD + long * short**2 + short**3 / 3.0)
    return Cost(shared, individual)


RIDGE = register_family(RidgeFamily())
LINEAR_REGRESSION = register_family(LinearRegressionFamily())
