"""Moments of much data, summed by several workers: each some atoms, merged as in one process."""

from collections.abc import Sequence
from dataclasses import dataclass

from manyfit.folds import SplitData

# Worth it from so many operations on, minutes of a core: with less, X is hashed once more and two rounds of
# tasks are waited for ...
SUM_OPERATIONS = 1e13
# ... on so many columns: with fewer, X is read and sent for longer than it is summed ...
SUM_COLUMNS = 300
# ... where the sums, which travel, are at most this share of X.
SUMS_SHARE = 0.01
# Operations of what is made of the moments of a fold, as a spectrum, from which folds are tasks of their own.
FOLD_OPERATIONS = 5e9


@dataclass(frozen=True)
class MomentParts:
    """How the moments of a search are cut into tasks.

    Attributes
    ----------
    atoms : int
        Atoms to be summed each by itself before; 0: whoever answers sums all that it needs.
    splits : sequence of tuple, or None
        The splits that each task answers; None stands for all.
    """

    atoms: int
    splits: Sequence[tuple[int, ...] | None]


def moment_parts(data: SplitData, n_slots: int) -> MomentParts:
    """How to cut, for workers that run so many tasks at a time."""
    p = data.X.shape[1]
    groups = data.splits.atom_groups
    if n_slots < 2 or p < SUM_COLUMNS or data.pass_operations < SUM_OPERATIONS:
        return MomentParts(0, [None])
    if len(groups) > 1:
        # Splits of different groups have no atoms in common: sums are of each group, as in one process.
        return MomentParts(0, [tuple(group.splits) for group in groups])
    if data.moment_bytes > SUMS_SHARE * data.X.nbytes:
        return MomentParts(0, [None])
    by_fold = 10.0 * p**3 >= FOLD_OPERATIONS
    return MomentParts(len(groups[0].rows), [(i,) for i in range(data.n_splits)] if by_fold else [None])
