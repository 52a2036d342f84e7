"""PLSRegression: the components of one fit on the moments of a fold answer every number of them."""

from typing import Any

import numpy as np
from sklearn.cross_decomposition import PLSRegression

from manyfit.families.least_squares._moment_family import MomentFamily, NormalEquations
from manyfit.families.protocol import Array, LinearAnswers, Settings, register_family, require_number
from manyfit.folds import TransformedMoments, Unsupported

# A component with a smaller part of the largest sum of squares is known to too few digits.
MIN_PART = 1e-5
# This part of the squares of a target has to be left; less is the rounding of their differences.
MIN_LEFT = 1e-12
# With several targets the iterations read their products with the features, of which this part is left.
MIN_COVARIANCE = 1e-6
# Steps of the iterations this near to `tol`, relative to it, may end them or not.
NEAR_TOL = 1e-4
_LEFT = "the components explain the targets, or are nearly dependent: rounding decides"


class PLSFamily(MomentFamily):
    """PLSRegression, which deflates the moments of a fold as scikit-learn deflates its rows.

    A component is a direction ``w`` of the products of features and targets. With its scores ``t = X w`` the
    products ``X'X`` and ``X'y`` lose what ``t`` explains. Later components do not change earlier ones, so the
    coefficients for k components follow from the first k.

    References: sklearn.cross_decomposition.PLSRegression (1.9), NIPALS. Dayal and MacGregor: Improved PLS
    algorithms (1997).
    """

    serves = (PLSRegression,)
    free = frozenset({"n_components"})

    def check(self, estimator: Any, settings: Settings) -> None:
        require_number("tol", estimator.tol)
        for setting in settings:
            require_number("n_components", setting["n_components"], positive=True)

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        numbers = [int(setting["n_components"]) for setting in settings]
        moments = view.plain
        if view.eps > np.finfo(np.float64).eps:
            raise Unsupported("scikit-learn answers float32 rows in float64 here")
        equations = NormalEquations.of(view, fit_intercept=True)
        x_scale, y_scale = np.ones(len(equations.xx)), np.ones(len(equations.yy))
        if estimator.scale:
            x_scale = np.sqrt(np.diagonal(equations.xx) / (moments.rows - 1.0))
            x_scale[x_scale == 0.0] = 1.0
            y_scale = np.sqrt(equations.yy / (moments.rows - 1.0))
        most = min(int(moments.rows), len(equations.xx))
        found, why = _components(
            equations.xx / x_scale / x_scale[:, None],
            equations.xy / x_scale[:, None] / y_scale,
            equations.yy / y_scale**2,
            max(k for k in [0, *numbers] if k <= most),
            estimator,
        )
        coef = np.zeros((len(x_scale), len(numbers), len(y_scale)))
        refused = {}
        for j, k in enumerate(numbers):
            if k > most:
                refused[j] = "n_components is larger than scikit-learn allows"
            elif k > len(found):
                refused[j] = why
            else:
                coef[:, j] = found[k - 1] * y_scale / x_scale[:, None]
        return equations.answers(view, coef, refused)


def _components(xx: Array, xy: Array, yy: Array, n: int, estimator: Any) -> tuple[list[Array], str]:
    """Coefficients, (p, q), for 1 to `n` components, and why there may be fewer."""
    largest, first, all_yy = np.trace(xx) / len(xx), np.linalg.norm(xy), yy
    rotations, loadings, found = list[Array](), list[Array](), list[Array]()
    coef = np.zeros_like(xy)
    for _ in range(n):
        if not (yy > MIN_LEFT * all_yy).all() or not xy[:, 0].any():
            return found, _LEFT
        if len(yy) > 1 and not np.linalg.norm(xy) > MIN_COVARIANCE * first:
            return found, _LEFT
        try:
            w = _direction(xx, xy, estimator)
        except Unsupported as reason:
            return found, str(reason)
        loading = xx @ w
        squares = float(w @ loading)
        if not squares > MIN_PART * largest:
            return found, _LEFT
        loading, y_loading = loading / squares, xy.T @ w / squares
        rotation = w.copy()
        for earlier, own in zip(loadings, rotations, strict=True):
            rotation -= (earlier @ w) * own
        loadings.append(loading)
        rotations.append(rotation)
        coef = coef + np.outer(rotation, y_loading)
        found.append(coef)
        xx = xx - squares * np.outer(loading, loading)
        xy = xy - squares * np.outer(loading, y_loading)
        yy = yy - squares * y_loading**2
    return found, ""


def _direction(xx: Array, xy: Array, estimator: Any) -> Array:
    """The weights of a component by scikit-learn's power method, which one target ends at once."""
    before, v = np.full(len(xx), 100.0), np.eye(len(xy.T))[0]
    for step in range(1, estimator.max_iter + 1):
        w = xy @ v
        w = w / np.linalg.norm(w)
        change = float(np.sum((w - before) ** 2))
        if xy.shape[1] > 1 and abs(change - estimator.tol) <= NEAR_TOL * estimator.tol:
            raise Unsupported("rounding decides where the power method stops")
        if xy.shape[1] == 1 or change < estimator.tol:
            if step < estimator.max_iter:
                return np.asarray(w)
            break
        before, v = w, xy.T @ w / float(w @ xx @ w)
    raise Unsupported("the power method reaches max_iter, of which scikit-learn warns")


register_family(PLSFamily())
