"""The base of families of least squares: normal equations of a fold, and what they cost."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from manyfit.families.protocol import Array, Cost, Family, LinearAnswers, MomentSums, Settings, Shape
from manyfit.folds import FoldedData, TransformedMoments, Unsupported
from manyfit.metrics.scoring import LinearPredictors, Rounding

# Operations of a millisecond, which validation, copies and Python of one scikit-learn fit and score take.
FIT_OVERHEAD = 1e6
# Operations of an eigendecomposition, in units of the cube of the columns, measured against a matrix product.
SPECTRUM_OPERATIONS = 10.0
# Operations of one fit by conjugate gradients on sparse rows, at the pace of an eigendecomposition: of the
# fit, of each entry of the rows, and of each that a fold's steps make (frames of 2,000 to 40,000 rows).
SPARSE_FIT, SPARSE_ENTRY, STEP_ENTRY = 7e7, 800.0, 6000.0
# With fewer rows a column than these, rounding decides where some conjugate gradients stop; and how many of
# them at most.
ROWS_A_COLUMN, MOST_OPEN = 20.0, 0.7
# A target whose variance is less than this part of its squared mean may be a constant.
MIN_VARIATION = 1e-20
# Rounding in a solver on the Gram matrix, in machine epsilons of what a feature adds to a prediction.
GRAM_NOISE = 16.0


class MomentFamily(Family):
    """Least squares on the moments of one fold after the other."""

    result: Literal["exact"] = "exact"
    reads = MomentSums()

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        """Operations of a group by moments and one by one.

        By moments: one pass, then one eigendecomposition a fold. One by one: a Gram matrix on the shorter
        side and its factorisation, each fit; or conjugate gradients on the sparse rows that steps make of a
        frame.
        """
        n, p, k, m = shape.n_train, shape.n_features, shape.n_splits, len(settings)
        shared = pass_operations(shape) + k * (SPECTRUM_OPERATIONS * p**3 + 4.0 * m * p**2 * shape.n_targets)
        if shape.n_entries is not None:
            fits = m * k * (SPARSE_FIT + SPARSE_ENTRY * shape.n_entries)
            open_ = MOST_OPEN * max(0.0, 1.0 - n / p / ROWS_A_COLUMN)
            return Cost(shared + open_ * fits, fits + k * STEP_ENTRY * shape.n_entries)
        short, long = min(n, p), max(n, p)
        return Cost(shared, m * k * (FIT_OVERHEAD + long * short**2 + short**3 / 3.0))

    def fit_many(self, estimator: Any, settings: Settings, folded: FoldedData) -> Iterator[LinearAnswers]:
        for i in range(folded.n_splits):
            yield self.fit_fold(estimator, settings, folded.view(i))

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        """The answers of one fold."""
        raise NotImplementedError


def pass_operations(shape: Shape) -> float:
    """Operations of the pass that sums the moments of all rows."""
    k = shape.n_splits
    return shape.n_train * (shape.n_features + shape.n_targets) ** 2 * k / max(k - 1, 1)


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
