"""The base of families of least squares, and the operations of their groups by moments and one by one."""

from collections.abc import Iterator
from typing import Any, Literal

from manyfit.families.protocol import Cost, Family, LinearAnswers, MomentSums, Settings, Shape
from manyfit.folds import FoldedData, TransformedMoments

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
