"""The problems of a path: all settings of some splits, over all rows of X or over a sample of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyfit.families.protocol import Array
from manyfit.families.smooth.solver._objective import Columns, Intercept, LinearProblem, Norm, RowLoss
from manyfit.folds import Passes, Rows, RowSource, TransformedMoments


@dataclass(frozen=True)
class TrainingRows:
    """Rows that training sets are made of: all of X, or a sample.

    `rowwise` has targets and weights of all rows of X, where they lie; `totals`, (n_sets,), are the sums of
    the weights of the sets; `chosen` is the index of the sample in X, on the host, None for all rows.
    """

    X: RowSource
    passes: Passes
    rowwise: RowLoss
    totals: Array
    chosen: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of the rows."""
        return self.X.shape[0] if self.chosen is None else len(self.chosen)

    @property
    def n_entries(self) -> int:
        """Numbers that a pass over the rows reads."""
        return self.n_rows * self.X.shape[1] if self.X.nnz is None else self.X.nnz


@dataclass(frozen=True)
class PathProblems:
    """All settings on some training sets, whatever rows these are made of.

    `counts`, (n_sets, n_atoms), says how often each set has the rows of each atom; `penalties`, (n_sets, m),
    are relative to the mean loss; `views` are the steps of each set, see `LinearProblem` for the others.
    """

    counts: Array
    penalties: Array
    views: Sequence[TransformedMoments | None]
    intercept: Intercept
    norm: Norm

    def over(self, rows: TrainingRows) -> LinearProblem:
        """The settings of the first set, then those of the second, ..., as columns of one problem."""
        n_sets, m = self.penalties.shape
        split = np.repeat(np.arange(n_sets), m)
        columns = Columns(split, self.penalties.ravel(), rows.totals[split], self.counts[split])
        return LinearProblem(rows.passes, rows.rowwise, columns, self.views, self.intercept, self.norm)


def weight_totals(rowwise: RowLoss, atoms: Sequence[Rows], counts: Array) -> Array:
    """Sums of the weights of training sets, (n_sets,)."""
    return np.array(
        [
            sum(c * rowwise.total(rows, i) for c, rows in zip(own, atoms, strict=True) if c)
            for i, own in enumerate(counts)
        ]
    )
