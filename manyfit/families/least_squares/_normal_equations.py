"""Normal equations of the training rows of one fold, about their mean or about zero."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from manyfit.families.protocol import Array, LinearAnswers
from manyfit.folds import TransformedMoments, Unsupported
from manyfit.metrics.scoring import LinearPredictors, Rounding

# A target whose variance is less than this part of its squared mean may be a constant.
MIN_VARIATION = 1e-20
# Rounding in a solver on the Gram matrix, in machine epsilons of what a feature adds to a prediction.
GRAM_NOISE = 16.0


class NormalEquations(NamedTuple):
    """Gram matrix ``xx`` (p, p), right-hand sides ``xy`` (p, q) and squares of the targets ``yy`` (q,).

    They are sums over the rows about a point, the mean or zero. `offset`, (p,), is the origin of the view
    less that point, and `y_offset`, (q,), what is added to the predictions.
    """

    xx: Array
    xy: Array
    yy: Array
    offset: Array
    y_offset: Array

    @classmethod
    def of(cls, view: TransformedMoments, fit_intercept: bool) -> "NormalEquations":
        """The equations of a fold; raises `Unsupported` if a target is constant, or no feature is left."""
        moments = view.weighted
        if view.n_features == 0:
            raise Unsupported("no features are left")
        if not (moments.yy > MIN_VARIATION * moments.weight * moments.y_mean**2).all():
            raise Unsupported("a target is constant in the training rows")
        if fit_intercept:
            xx = np.diag(moments.xx) if moments.xx.ndim == 1 else moments.xx
            return cls(xx, moments.xy, moments.yy, -moments.x_offset, moments.y_mean)
        weight, y_mean = moments.weight, moments.y_mean
        yy = moments.yy + weight * y_mean**2
        return cls(moments.raw_xx, moments.raw_xy, yy, moments.x_origin, np.zeros_like(y_mean))

    def answers(
        self, view: TransformedMoments, coef: Array, refused: Mapping[int, str], flat: bool = False
    ) -> LinearAnswers:
        """Answers with the coefficients `coef`, (p, m, q), and what rounding in the Gram matrix does.

        A solver that repeats products with the Gram matrix loses digits of each feature's part of a
        prediction, the more the more features there are.
        """
        p, m, q = coef.shape
        on_X = view.to_X(coef.reshape(p, m * q)).reshape(-1, m, q)
        at_origin = self.y_offset + np.tensordot(self.offset, coef, axes=1)
        noise = GRAM_NOISE * np.sqrt(p) * np.finfo(np.float64).eps * np.abs(coef).max(axis=2)
        rounding = Rounding(view.origin, view.to_X(np.eye(p)), self.offset, noise, np.ones((m, q)))
        linear = LinearPredictors(on_X, at_origin, view.origin)
        return LinearAnswers(linear, refused, (rounding,), flat)
