"""OrthogonalMatchingPursuit: scikit-learn's pursuit on the Gram matrix of each fold."""

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.linear_model import OrthogonalMatchingPursuit, orthogonal_mp_gram

from manyfit.families.least_squares._moment_family import MomentFamily, NormalEquations
from manyfit.families.protocol import (
    LinearAnswers,
    Settings,
    recorded_warnings,
    register_family,
    require_number,
)
from manyfit.folds import TransformedMoments, Unsupported

# The smallest eigenvalue of the correlations of the features. Under it least squares on a Gram matrix, which
# are scikit-learn's way too, lose the digits in which two programs agree.
MIN_EIGENVALUE = 1e-5


class MatchingPursuitFamily(MomentFamily):
    """OrthogonalMatchingPursuit with a number of features, where it works on a Gram matrix itself.

    Reference: sklearn.linear_model.OrthogonalMatchingPursuit (1.9): the feature of the largest correlation
    with the residuals joins, and least squares on the features so far leaves the next residuals.
    """

    serves = (OrthogonalMatchingPursuit,)
    free = frozenset({"n_nonzero_coefs"})

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.tol is not None:
            raise Unsupported("tol is a sum of squares, within rounding of which it stops")
        if not estimator.precompute:
            raise Unsupported("precompute=False works on rows")
        for setting in settings:
            if setting["n_nonzero_coefs"] is not None:
                require_number("n_nonzero_coefs", setting["n_nonzero_coefs"], positive=True)

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        p = view.n_features
        equations = NormalEquations.of(view, estimator.fit_intercept)
        require_independent(equations, view)
        coef, refused = np.zeros((len(settings), *equations.xy.shape)), {}
        for j, setting in enumerate(settings):
            k = setting["n_nonzero_coefs"]
            n_nonzero_coefs = max(int(0.1 * p), 1) if k is None else k
            with recorded_warnings() as warned, suppress(ValueError):
                pursued = orthogonal_mp_gram(equations.xx, equations.xy, n_nonzero_coefs=n_nonzero_coefs)
                if not warned:
                    coef[j] = pursued.reshape(equations.xy.shape)
                    continue
            refused[j] = "the pursuit ends early, or needs more features than there are"
        return equations.answers(view, np.moveaxis(coef, 0, 1), refused, flat=True)


def require_independent(equations: NormalEquations, view: TransformedMoments) -> None:
    """Raise `Unsupported` if rounding could decide which features join."""
    p, n = view.n_features, view.weighted.rows
    if view.eps > np.finfo(np.float64).eps:
        raise Unsupported("scikit-learn chooses features in float32 here")
    if p == 1 or n <= p + 1:
        raise Unsupported("there is one feature, or the features may fit the training rows exactly")
    scale = np.sqrt(np.diagonal(equations.xx))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = equations.xx / scale / scale[:, None]
    if not (scale > 0.0).all() or np.linalg.eigvalsh(correlations)[0] < MIN_EIGENVALUE:
        raise Unsupported("the columns are (nearly) linearly dependent")


register_family(MatchingPursuitFamily())
