"""Ridge and LinearRegression: one eigendecomposition a fold answers every alpha."""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, Ridge

from manyfit.estimators._family import Cost, LinearAnswers, Shape, register_family
from manyfit.folds import FoldedData, Moments, Spectrum, Unsupported, View
from manyfit.metrics import LinearPredictors, residual_mean_squares

Array = NDArray[Any]

# Below this ratio of the extreme eigenvalues the normal equations keep too few digits to tell how many.
MIN_SPECTRAL_RATIO = 1e-12
# Largest error that the predictions may have from the normal equations, in units of their residual.
MAX_ERROR = 3e-11
# Validation, copies and Python of one scikit-learn fit and score take about a millisecond: so many
# operations.
FIT_OVERHEAD = 1e6


class RidgeFamily:
    """Ridge with a direct solver: ``(S + alpha I) coef = s`` with the centred scatter S of the fold.

    With ``S = V diag(l) V'`` the coefficients of every alpha are ``V (V's / (l + alpha))``.

    References
    ----------
    sklearn.linear_model.Ridge (1.9): ``||y - X w||^2 + alpha ||w||^2``, sums not divided by n.
    """

    serves = (Ridge,)
    free = frozenset({"alpha"})
    result: Literal["exact"] = "exact"
    needs: Literal["moments"] = "moments"

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        """See `Family`."""
        if estimator.solver not in ("auto", "svd", "cholesky"):
            raise Unsupported(f"solver={estimator.solver!r} iterates; only direct solvers are shared")
        _refuse_positive(estimator)
        for setting in settings:
            alpha = setting["alpha"]
            if not isinstance(alpha, Real) or isinstance(alpha, bool) or not 0 <= float(alpha) < np.inf:
                raise Unsupported(f"alpha={alpha!r} is not one finite number from 0")

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        """See `Family`."""
        return moment_cost(len(settings), shape)

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: FoldedData
    ) -> Iterator[LinearAnswers]:
        """See `Family`."""
        alphas = np.array([float(setting["alpha"]) for setting in settings])
        for i in range(folded.n_splits):
            view = folded.view(i)
            spectrum, _ = _equations(view, estimator.fit_intercept)
            largest, smallest = spectrum.values[0] + alphas, spectrum.values[-1] + alphas
            poor = ~(smallest > MIN_SPECTRAL_RATIO * largest)
            # Nobody reads the answers of poor settings; a large alpha keeps them finite.
            safe = np.where(poor, largest + 1.0, alphas)
            linear, norms = _solve(view, safe, estimator.fit_intercept)
            poor |= _is_inexact(linear, norms, view, spectrum, safe, folded.scoring_moments(i, "test"))
            yield LinearAnswers(linear, dict.fromkeys(map(int, np.flatnonzero(poor)), _INEXACT))


class LinearRegressionFamily:
    """LinearRegression at full rank, from the same equations with ``alpha = 0``.

    scikit-learn cuts singular values under its ``cond``; wherever a cut is near, the fold is left to it.
    """

    serves = (LinearRegression,)
    free: frozenset[str] = frozenset()
    result: Literal["exact"] = "exact"
    needs: Literal["moments"] = "moments"

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        """See `Family`."""
        _refuse_positive(estimator)

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        """See `Family`."""
        return moment_cost(len(settings), shape)

    def fit_many(
        self, estimator: Any, settings: Sequence[Mapping[str, Any]], folded: FoldedData
    ) -> Iterator[LinearAnswers]:
        """See `Family`."""
        for i in range(folded.n_splits):
            view = folded.view(i)
            spectrum, _ = _equations(view, estimator.fit_intercept)
            # cond is ``tol`` from scikit-learn 1.9 and max(n, p) eps before it.
            cond = max(getattr(estimator, "tol", 0.0), max(view.plain.rows, view.n_features) * view.eps)
            floor = max(MIN_SPECTRAL_RATIO, (4.0 * cond) ** 2) * spectrum.values[0]
            if not spectrum.values[-1] > floor:
                raise Unsupported("the columns are (nearly) linearly dependent: the rank decides")
            linear, norms = _solve(view, np.zeros(1), estimator.fit_intercept)
            if _is_inexact(linear, norms, view, spectrum, np.zeros(1), folded.scoring_moments(i, "test"))[0]:
                raise Unsupported(_INEXACT)
            n = len(settings)
            yield LinearAnswers(
                LinearPredictors(
                    np.repeat(linear.coef, n, axis=1), np.repeat(linear.at_origin, n, axis=0), linear.origin
                )
            )


def _refuse_positive(estimator: Any) -> None:
    if estimator.positive:
        raise Unsupported("positive=True is a constrained problem")


def _equations(view: View, fit_intercept: bool) -> tuple[Spectrum, Array]:
    """Spectrum and right-hand side of the normal equations."""
    moments = view.weighted
    if view.n_features == 0:
        raise Unsupported("no features are left")
    if fit_intercept:
        return moments.spectrum, moments.xy
    return moments.raw_spectrum, moments.raw_xy


def _solve(view: View, alphas: Array, fit_intercept: bool) -> tuple[LinearPredictors, Array]:
    """Ridge solutions for all alphas: predictors on the columns of X, and the norms of the coefficients."""
    spectrum, rhs = _equations(view, fit_intercept)
    p, q, m = view.n_features, rhs.shape[1], len(alphas)
    along = spectrum.onto_axes(rhs)[:, None, :] / (spectrum.values[:, None] + alphas)[:, :, None]
    coef = spectrum.from_axes(along.reshape(p, m * q))
    at_origin = (view.at_origin @ coef).reshape(m, q)
    if fit_intercept:
        moments = view.weighted
        at_origin = moments.y_mean + ((view.at_origin - moments.x_mean) @ coef).reshape(m, q)
    norms = np.sqrt((along**2).sum(axis=0))
    return LinearPredictors(view.to_X(coef).reshape(-1, m, q), at_origin, view.origin), norms


_INEXACT = "the normal equations would lose digits of the score"


def _is_inexact(
    linear: LinearPredictors, norms: Array, view: View, spectrum: Spectrum, alphas: Array, test: Moments
) -> Array:
    """Which settings may predict the test rows with an error above `MAX_ERROR` of their residual.

    Along an eigenvector the coefficient is off by about ``eps l_max |coef| / (l + alpha)``; what that does
    to the test rows follows from how far they spread along it, which their moments tell.
    """
    p = view.origin.size
    axes = np.eye(view.n_features) if spectrum.vectors is None else spectrum.vectors
    along = view.to_X(axes)
    offset = (test.mean[:p] - view.origin) @ along
    spread = np.einsum("pk,pk->k", along, test.scatter[:p, :p] @ along) / test.weight + offset**2
    noise = np.finfo(np.float64).eps * spectrum.values[0] / (spectrum.values[:, None] + alphas)
    error = np.sqrt((np.maximum(spread, 0.0)[:, None] * noise**2).sum(axis=0))[:, None] * norms
    residual = np.sqrt(residual_mean_squares(linear, test))
    y_scale = np.sqrt(np.maximum(np.diagonal(test.scatter)[p:], 0.0) / test.weight) + np.abs(test.mean[p:])
    return np.asarray((error > MAX_ERROR * np.maximum(residual, 1e-9 * y_scale)).any(axis=1))


def moment_cost(n_settings: int, shape: Shape) -> Cost:
    """Operations of a least-squares group by moments and one by one.

    By moments: one pass, then one eigendecomposition a fold (about ``10 p^3``, measured against a
    matrix product). One by one: a Gram matrix on the shorter side and its factorisation, each fit.
    """
    n, p, k = shape.n_train, shape.n_features, shape.n_splits
    d, short, long = p + shape.n_targets, min(n, p), max(n, p)
    shared = n * d**2 * k / max(k - 1, 1) + k * (10.0 * p**3 + 4.0 * n_settings * p**2 * shape.n_targets)
    one_by_one = n_settings * k * (FIT_OVERHEAD + long * short**2 + short**3 / 3.0)
    return Cost(shared, one_by_one)


RIDGE = register_family(RidgeFamily())
LINEAR_REGRESSION = register_family(LinearRegressionFamily())
