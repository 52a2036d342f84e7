"""From coarse to fine: all settings of all splits on a few training rows, then on more, then on all.

Most of the path is covered while a pass costs little. No split ever starts from coefficients that have seen
its test rows: in directions that the training rows leave open, any start stays in the answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from manyfit.families.protocol import Array
from manyfit.families.smooth.solver._lbfgs import LBFGS
from manyfit.families.smooth.solver._objective import Intercept, Norm, RowLoss
from manyfit.families.smooth.solver._penalty_path import PathPoint, Stage, Tolerance
from manyfit.families.smooth.solver._problems import PathProblems, TrainingRows, weight_totals
from manyfit.families.smooth.solver._solution import PathSolution
from manyfit.families.smooth.solver._trial import MARGIN, MARGIN_OF_SAMPLE, Stopping, try_columns
from manyfit.folds import AtomGroup, PassData, Rows, Unsupported, n_rows, single_blas_thread
from manyfit.metrics.scoring import LinearPredictors

# A result is followed until its gradient is this share of the estimator's tol, and taken if it meets tol.
TOL_SHARE = 1e-2
# Rounding of a gradient, in machine epsilons of its size at zero.
ROUNDING = 30.0
# Rows of the first, small problem for each coefficient; fewer would say little about the others.
SMALL_ROWS = 20
# Rows for each coefficient of a sample on which scikit-learn's solver is tried.
TRIAL_ROWS = 40
# Numbers of the rows of a trial up to which a pass takes no longer than the steps between two: the
# setting with the smallest penalty is then tried on all splits at once.
QUICK_ENTRIES = 2**20
# Settings that take this share of the steps of the slowest are as slow.
SLOW = 0.9
# Each problem has so many times the rows of the one before it.
COARSER = 4
# Training sets whose weights differ by no more than this factor are tried as one.
ALIKE = 1.25
# On a sample the gradient need not be smaller than its sampling error: this share of its size at zero over
# the square root of the number of rows.
CHANCE = 0.3
# scikit-learn's fits are at most so many times as far from the optimum as a gradient of size `tol` with
# random signs leads: 99 in 100 of some 1,300 were. `python -m benchmarks convergence` counts winners whose
# ties are missed for it.
MARGIN_OF_ERROR = 2.0


@dataclass(frozen=True)
class Model:
    """A linear model with a penalty, for many settings of the penalty."""

    rowwise: RowLoss  # loss, targets and weights of all rows; on the host
    # From the weight of a training set to the penalties, (m,), relative to the mean loss.
    penalties: Callable[[float], Array]
    intercept: Intercept  # see `LinearProblem`
    tol: float  # size of the gradient of the mean loss at which scikit-learn stops
    norm: Norm = "largest"  # of the gradient; the euclidean one is relative to that at zero
    # Start of the linear predictor with a free intercept, (n_splits,); from training rows only.
    start: Array | float = 0.0
    # Where scikit-learn's solver stops short of `tol`; for `PassData.sklearn_stops`.
    stopping: Stopping | None = None


def fit_path(data: PassData, model: Model) -> Iterator[PathSolution]:
    """Fit all settings on all splits: a solution for each split, all fitted when the first is taken.

    Of sparse data only the coefficients of the merged features are kept; those of all features are made for
    one split at a time.
    """
    data = data.condensed()
    with single_blas_thread():  # the passes use the others
        rowwise, groups, T = model.rowwise.beside(data.X), data.groups, data.basis
        fitted = [one for group in groups for one in _Group(data, model, rowwise, group).fit()]
    del data  # not needed while answers are scored
    for one in fitted:
        yield one if T is None else one.spread(T)


class _Group:
    """Splits with the same atoms; `beside_X` has the targets and weights of all rows where X lies."""

    def __init__(self, data: PassData, model: Model, beside_X: RowLoss, group: AtomGroup) -> None:
        self.data, self.model, self.group = data, model, group
        self.on_host, self.beside_X = model.rowwise.of_splits(group.splits), beside_X.of_splits(group.splits)
        self.totals = weight_totals(self.on_host, group.rows, group.train)
        if not ((self.totals > 0.0) & (self.totals < np.inf)).all():
            raise Unsupported("the weights of a training part have no finite sum above 0")
        self.penalties = np.stack([model.penalties(total) for total in self.totals])
        views = [data.views[i] for i in group.splits]
        self.problems = PathProblems(group.train, self.penalties, views, model.intercept, model.norm)
        self.passes = data.X.passes(group.rows, data.origin)
        self.every = TrainingRows(data.X, self.passes, self.beside_X, self.totals)
        self.problem = self.problems.over(self.every)
        self.rows_read = 0  # rows of samples
        self._tol = np.full(self.penalties.shape, model.tol)  # where scikit-learn's solver stops

    def fit(self) -> list[PathSolution]:
        """All settings on all splits, but for those that scikit-learn's solver may leave unfinished."""
        trusted, start = self._trusted()
        kept = np.flatnonzero(trusted.any(axis=0))
        converged, (n_sets, K, d) = np.zeros_like(trusted), self.zero.shape
        W, error = np.empty((2, n_sets, 0, K, d))
        if kept.size:
            reached, acceptable = self._followed(kept, start)
            error = MARGIN_OF_ERROR * acceptable[:, None, None] * reached.sensitivity
            W, error = (A.reshape(n_sets, kept.size, K, d) for A in (reached.W, error))
            converged[:, kept] = (reached.size <= acceptable).reshape(n_sets, kept.size)
        read = self.rows_read + self.passes.rows_read
        found = []
        for i, own in enumerate(converged):
            linear, off = (self._linear(A[i], kept, i) for A in (W, error))
            found.append(PathSolution(linear, off, own, trusted[i], 0 if i else read))
        return found

    def _followed(self, kept: Array, start: Array | None) -> tuple[PathPoint, Array]:
        """The ends of some settings on all splits, and the acceptable sizes of their gradients."""
        stage, zero = self._stage(self.every, kept), self.zero
        # The euclidean norm is relative to these sizes, and that of few rows may be much larger, or zero.
        # They are measured before the coarse stages exist, which take memory.
        sizes = stage.sizes_at(zero) if self.model.norm == "euclidean" else None
        # Stages on samples of ever fewer rows, where these save something.
        samples = map(self._sample, self._shares()[1:] if start is None else [])
        coarse = [self._stage(some, kept) for some in samples if some is not None]
        if sizes is None:
            sizes = (coarse[-1] if coarse else stage).sizes_at(zero)
        scale = float(sizes.max())
        while coarse:  # a finished stage frees its rows
            one = coarse.pop()
            chance = CHANCE * scale / float(np.sqrt(one.n_rows))
            start = one.solve(start, zero, Tolerance(chance, 0.0, scale)).W
            self.rows_read += one.passes.rows_read
            del one
        acceptable = self._tol[:, kept].ravel()
        if self.model.norm == "euclidean":
            acceptable *= float(sizes.min())
        tol = np.maximum(acceptable * TOL_SHARE, ROUNDING * stage.passes.eps * scale)
        goal = Tolerance(np.minimum(tol, acceptable), acceptable, scale)
        return stage.solve(start, zero, goal), acceptable

    def _trusted(self) -> tuple[Array, Array | None]:
        """Settings that scikit-learn's solver would finish on each split, (n_splits, m), and a start or None.

        The smallest training set is tried, and the largest if its size differs: on a sample of its rows if
        there are enough. The other splits are tried for a few settings. A trial on all rows of a single split
        is a start, too, since it has seen no other rows.
        """
        stopping, shape = self.model.stopping, self.penalties.shape
        if stopping is None or not self.data.sklearn_stops:
            return np.ones(shape, dtype=bool), None
        splits = np.array([self.totals.argmin(), self.totals.argmax()])
        if self.totals.max() <= ALIKE * self.totals.min():
            splits = splits[:1]
        share = self._shares(TRIAL_ROWS)[-1]
        sample = self._sample(share) if share > 1 else None
        rows, margin = (self.every, MARGIN) if sample is None else (sample, MARGIN_OF_SAMPLE)
        trials = _Trials(self, rows, stopping, margin)
        first = np.zeros(shape, dtype=bool)
        first[splits] = True
        if rows.n_entries <= QUICK_ENTRIES:
            first[:, self.penalties[0].argmin()] = True
        W = trials.run(first)
        trusted = np.asarray(trials.trusted[splits].all(axis=0))
        on_all = self._on_all_splits(trusted, splits, trials)
        self._tol = np.maximum(self._tol, trials.tolerances)
        return on_all, W[trusted] if shape[0] == 1 and sample is None else None

    def _on_all_splits(self, trusted: Array, splits: Array, trials: "_Trials") -> Array:
        """The settings to trust on each split: the same as on some splits if the others are alike.

        They are tried for one of the slowest settings and for that with the smallest penalty, and if these
        fail for all.
        """
        n_splits = len(self.penalties)
        kept, others = np.flatnonzero(trusted), np.setdiff1d(np.arange(n_splits), splits)
        if kept.size and others.size:
            kept = kept[np.argsort(self.penalties[0, kept], kind="stable")]
            steps = trials.steps[np.ix_(splits, kept)].max(axis=0)
            slow = (steps >= SLOW * steps.max()).argmax()
            hard = np.ix_(others, kept[[0, slow]])
            trials.run(hard)
            if not trials.trusted[hard].all():
                trials.run(np.ix_(others, kept))
                every = trials.trusted & trusted
                every[splits] = trusted
                return np.asarray(every)
        return np.tile(trusted, (n_splits, 1))

    @cached_property
    def zero(self) -> Array:
        """The starting points of the splits, (n_splits, K, p + 1); no test row affects them."""
        splits = self.group.splits
        zero = np.zeros((len(splits), self.on_host.loss.n_outputs, self.problem.n_features + 1))
        if self.model.intercept == "free":
            own = np.broadcast_to(self.model.start, len(self.data.views))[splits.start : splits.stop]
            zero[:, :, -1] = own[:, None]
        return zero

    def _stage(self, rows: TrainingRows, kept: Array) -> Stage:
        problems = replace(self.problems, penalties=self.penalties[:, kept])
        return Stage(rows, problems, LBFGS(), self.data.memory_limit)

    def _shares(self, rows_a_coefficient: int = SMALL_ROWS) -> list[int]:
        """One over the share of the rows of each stage: 1, 4, 16, ...; only 1 if samples do not pay."""
        shares = [1]
        size = self.on_host.loss.n_outputs * (self.problem.n_features + 1)
        least = COARSER * rows_a_coefficient * size
        while self.data.X.samples_pay and self.data.X.shape[0] >= shares[-1] * least:
            shares.append(shares[-1] * COARSER)
        return shares

    def _sample(self, share: int) -> TrainingRows | None:
        """One in `share` rows of each atom; None if that saves nothing, or leaves a split without weights."""
        # Drawn at random, but always the same: regular rows could miss a regular pattern.
        rng = np.random.default_rng(0)
        parts = []
        for rows in self.group.rows:
            size = n_rows(rows)
            some = np.sort(rng.choice(size, -(-size // share), replace=False))
            parts.append(rows.start + some if isinstance(rows, slice) else rows[some])
        ends = np.cumsum([0, *map(len, parts)])
        atoms: list[Rows] = [slice(int(start), int(stop)) for start, stop in pairwise(ends)]
        chosen = np.concatenate(parts)
        rowwise = self.on_host.subset(chosen)
        totals = weight_totals(rowwise, atoms, self.group.train)
        if not (totals > 0.0).all():
            return None
        X, origin = self.data.X, self.passes.origin
        sample = X.sample(chosen)
        if sample is None and not X.reads_some_rows:
            return None
        if sample is None:  # the rows are read where they lie, a block at a time
            return TrainingRows(X, X.passes(parts, origin), self.beside_X, totals, chosen)
        return TrainingRows(sample, sample.passes(atoms, origin), rowwise.beside(sample), totals)

    def _linear(self, some: Array, kept: Array, i: int) -> LinearPredictors:
        """Predictors of all settings on a split, from those of some; zero for the others."""
        W = np.zeros((self.penalties.shape[1], *some.shape[1:]))
        W[kept] = some
        theta = self.problem.to_X(W, np.full(len(W), i))
        return LinearPredictors(theta[:, :, :-1].transpose(2, 0, 1), theta[:, :, -1], self.passes.origin)


class _Trials:
    """Trials of pairs of a split and a setting, (n_splits, m) each; no pair is tried twice."""

    def __init__(self, group: _Group, rows: TrainingRows, stopping: Stopping, margin: float) -> None:
        self._group, self._rows, self._stopping, self._margin = group, rows, stopping, margin
        shape = group.penalties.shape
        self.trusted, self._tried = np.zeros((2, *shape), dtype=bool)
        self.steps, self.tol = np.zeros(shape, dtype=int), np.zeros(shape)

    def run(self, index: Any) -> Array:
        """Try the pairs at an index that are still to be tried, and return where they ended."""
        group, rows, new = self._group, self._rows, np.zeros_like(self._tried)
        new[index] = True
        new &= ~self._tried
        before = rows.passes.rows_read
        tried = try_columns(
            group.problems.over(rows), group.zero, np.flatnonzero(new), group.model.tol, self._stopping,
            self._margin, group.data.memory_limit / 2, not group.data.sklearn_reads,
        )  # fmt: skip
        if rows is not group.every:
            group.rows_read += rows.passes.rows_read - before
        self.trusted[new], self.steps[new], self._tried[new] = tried.trusted, tried.steps, True
        self.tol[new] = tried.tol
        return tried.W

    @property
    def tolerances(self) -> Array:
        """The tolerances that pairs were followed to, and for others the largest of their setting."""
        own = np.where(self.trusted, self.tol, 0.0)
        return np.where(self.trusted, own, own.max(axis=0))
