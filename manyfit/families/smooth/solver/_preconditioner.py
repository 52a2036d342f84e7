"""Approximate Hessians: few that serve many columns, solved for each column with its own penalty.

A Hessian is a sum over the rows, so that one product over the rows of each atom gives those of all
splits. Settings whose curvatures are near each other share one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from manyfit.arrays import array_namespace, block_size, device, to_host
from manyfit.families.smooth.solver._objective import Intercept, LinearProblem
from manyfit.folds import RowSample, map_threads, row_blocks

Array = NDArray[Any]

# Rows on which curvatures are compared.
SAMPLE_ROWS = 2000
# A Hessian of d K coefficients takes the operations of d K / 4 passes over one column, which are products of
# narrow matrices and take twice as long, and saves a dozen or two of each column that it serves: it should
# serve d K / 130 of them.
COEFFICIENTS_A_COLUMN = 130
# A Hessian is summed and factored in single precision, which takes half the time, unless a pivot of a factor
# is less than this share of its diagonal: what holds so little is lost among the rounding of the rest.
WEAK = 1e-4
# Numbers of Hessians that are brought home from a device together, if there are several: 1 MiB. To wait for
# it is little beside what it takes to sum as much.
SUMS = 2**17
# Numbers that are worked on at a time where curvatures of many columns are made and compared: 8 MiB. They are
# as many arrays at once, of one output and of more.
WORKED_ON, OF_ONE, OF_MORE = 2**20, 3.2, 4.2


@dataclass(frozen=True)
class Matrix:
    """A Hessian of the mean loss, whole or in part; coefficients in the order of a (K, d) array.

    Attributes
    ----------
    diagonal : ndarray of shape (K d,)
        Its diagonal.
    block : ndarray of shape (k, k)
        The rows and columns that are known; the others are zero but for the diagonal.
    place : ndarray of int of shape (k,), or slice
        Which they are.
    """

    diagonal: Array
    block: Array
    place: Any


class Factor:
    """A penalised Hessian that can be solved.

    Of several outputs only differences matter to the loss. Gradients, and steps from where all are zero, sum
    to zero over the outputs, so that any curvature may be added for their sum: without it, the penalty alone
    would hold them, or nothing.

    Parameters
    ----------
    matrix : Matrix
        Of the mean loss.
    penalty : float
        What is added to its diagonal.
    intercept : {"free", "penalised", "none"}
        What the last coefficient of each output is.
    n_outputs : int
        K.
    dtype : dtype
        Precision of the solutions.
    """

    def __init__(
        self, matrix: Matrix, penalty: float, intercept: Intercept, n_outputs: int, dtype: Any
    ) -> None:
        self._dtype, self._place, own = dtype, matrix.place, matrix.diagonal
        shift = np.full(own.size, penalty).reshape(n_outputs, -1)
        # A free intercept is not penalised; one that is not there only must not be singular.
        shift[:, -1] = {"free": 0.0, "penalised": penalty, "none": 1.0}[intercept]
        # What is not finite says nothing of its coefficient; any positive number is a preconditioner.
        own = np.where(np.isfinite(own), own, 1.0)
        # A little where nothing else holds a coefficient.
        diagonal = own + shift.ravel() + 1e-16 * (own.max(initial=0.0) + penalty) + 1e-300
        known = matrix.block.size and np.isfinite(matrix.block).all()
        alike = _alike(own[self._place].reshape(n_outputs, -1)) if known and n_outputs > 1 else None
        if alike is not None:
            diagonal[self._place] += np.tile(alike, n_outputs)
        # To a unit diagonal: columns of any size are alike, in any precision.
        self._scale = 1.0 / np.sqrt(diagonal)
        self._factor = self._factored(matrix.block, self._scale[self._place], alike) if known else None

    @property
    def weakest(self) -> float:
        """The least pivot, as a share of the diagonal."""
        return 1.0 if self._factor is None else float(np.diagonal(self._factor[0]).min(initial=1.0)) ** 2

    def _factored(self, block: Array, scale: Array, alike: Array | None) -> Any:
        more = 16.0 * float(np.finfo(self._dtype).eps)
        while True:
            unit = block * scale
            unit *= scale[:, None]
            if alike is not None:
                by_output = scale.reshape(-1, alike.size)
                parts = unit.reshape(*by_output.shape, *by_output.shape)
                np.einsum("kjlj->klj", parts)[...] += alike * by_output[:, None] * by_output
            unit = unit.astype(self._dtype, copy=False)
            np.fill_diagonal(unit, 1.0 + more)
            try:
                # Transposed it is the same, and in the order that LAPACK works in.
                return cho_factor(unit.T, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                # Rounding made it indefinite. A larger shift is only a shorter step.
                more *= 10.0

    def solve(self, g: Array) -> Array:
        """The inverse of the Hessian times `g`, of shape (K d,)."""
        scaled = g * self._scale
        if self._factor is not None:
            own = scaled[self._place]
            # Gradients may be smaller than a narrow type holds.
            size = float(np.abs(own).max(initial=0.0))
            if 0.0 < size < np.inf:
                unit = cho_solve(self._factor, (own / size).astype(self._dtype), check_finite=False)
                scaled[self._place] = size * unit.astype(np.float64)
        return np.asarray(self._scale * scaled, dtype=np.float64)


def _alike(own: Array) -> Array:
    """Curvature to add for the sum over the outputs, of each feature, from those by one output twice, (K, q).

    Between the least and the mean of them, so that neither is little beside the other.
    """
    return np.asarray(np.sqrt(np.maximum(own.min(axis=0), 0.0) * np.maximum(own.mean(axis=0), 0.0)))


@dataclass(frozen=True)
class _Anchor:
    """Where a Hessian was taken.

    Attributes
    ----------
    sample : array of shape (K, b)
        Curvatures of some rows there; where X lies.
    blocks : ndarray of shape (n_atoms, k, k)
        Sums over the rows of each atom, for the coefficients that are known whole.
    diagonals : ndarray of shape (n_atoms, K d), or None
        The same for the diagonals; None where all coefficients are known whole.
    dtype : dtype
        Precision of the blocks.
    """

    sample: Any
    blocks: Array
    diagonals: Array | None
    dtype: Any


class Hessians:
    """The Hessians that the columns of a problem use.

    Parameters
    ----------
    problem : LinearProblem
        The problem; its ``precondition`` may be `solve`.
    head : ndarray of int of shape (h,), or None
        Features between which, and the intercepts, second derivatives are known; of the others only by one
        coefficient twice. None: all. Not all where there are steps: then none, ``h = 0``.
    some : tuple of (X, Rows)
        Some rows of X less its origin, dense or sparse, and which they are, as `Passes.some` gives them.
    most : int
        Hessians that are kept at most; beyond them the nearest serves.
    dtype : dtype
        Precision to begin with.
    """

    def __init__(
        self,
        problem: LinearProblem,
        head: Array | None,
        sample: RowSample,
        most: int,
        dtype: Any = np.float32,
    ) -> None:
        self.problem, self._head, self._sample, self._most = problem, head, sample, most
        self._dtype, self._squares = dtype, sample.mean_square()
        self._anchors: list[_Anchor] = []  # the newest last
        self._used: dict[int, _Anchor] = {}
        self._factors: dict[int, Factor] = {}

    def solve(self, G: Array, columns: Array) -> Array:
        """The inverse of the Hessian of each column times its gradient, (m, K, d)."""
        flat = G.reshape(len(G), -1)
        out = np.empty(flat.shape)
        for j, c in enumerate(map(int, columns)):
            out[j] = self._factors[c].solve(flat[j])
        return out.reshape(G.shape)

    def renew(self, W: Array, columns: Array, share: float) -> None:
        """Give columns Hessians of where they are.

        Parameters
        ----------
        W : ndarray of shape (m, K, d)
            Coefficients of the columns.
        columns : ndarray of int of shape (m,)
            Which they are.
        share : float
            A Hessian serves a column if their curvatures differ by no more than this share.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # `Factor` leaves out what is not finite
            self._choose(W, columns, share)
            weakest = self._factor(columns)
            if weakest < WEAK and self._dtype != np.float64:
                self._dtype = np.float64
                self._choose(W, columns, share)
                self._factor(columns)

    def release(self, columns: Array) -> None:
        """Forget what columns are solved with; the Hessians stay, for others, while there is room."""
        for c in map(int, columns):
            self._factors.pop(c, None)

    def _choose(self, W: Array, columns: Array, share: float) -> None:
        """Find a Hessian for each column, and take those that are missing."""
        samples = self._samples(W, columns)
        sound = [one for one in self._anchors if np.finfo(one.dtype).eps <= np.finfo(self._dtype).eps]
        places = [anchor.sample for anchor in sound] + [samples[:, j, :] for j in range(len(columns))]
        both = self._away(samples, columns, places)
        away, apart = both[: len(sound)], both[len(sound) :]
        chosen = _chosen(away, apart, share, self._room(W))
        distances = np.concatenate([away, apart[chosen]])
        # Where there is no room for all, those stay that serve, and then the newest.
        serving = set(distances.argmin(axis=0).tolist())
        too_many = max(0, len(sound) + len(chosen) - self._most)
        kept = sorted(sorted(range(len(sound)), key=lambda a: (a in serving, a))[too_many:])
        self._anchors, self._used = [sound[a] for a in kept], {}
        del sound  # there may be no room for them while others are taken
        # A transfer for all of them, as far as their sums are no burden where X lies.
        step = max(1, SUMS // self._sums(W.shape[1]))
        # Copies: a view would keep those of all columns.
        xp = array_namespace(samples)
        own = [xp.asarray(samples[:, j, :], copy=True) for j in chosen]
        del samples, places
        for first in range(0, len(chosen), step):
            some = chosen[first : first + step]
            self._anchors += self._taken(W[some], columns[some], own[first : first + step])
        nearest = distances[[*kept, *range(len(away), len(distances))]].argmin(axis=0)
        for c, a in zip(map(int, columns), nearest, strict=True):
            self._used[c] = self._anchors[a]

    def _factor(self, columns: Array) -> float:
        """Factor the Hessians of columns; the weakest pivot of all."""
        problem, K = self.problem, self.problem.rowwise.loss.n_outputs
        split, penalty = problem.columns.split, problem.columns.penalty
        weakest = 1.0
        for anchor in self._anchors:
            users = [c for c in map(int, columns) if self._used[c] is anchor]
            splits = sorted({int(split[c]) for c in users})
            found = map_threads(partial(self._matrix, anchor, n_outputs=K), splits)
            matrices = dict(zip(splits, found, strict=True))

            def factor(c: int, matrices: dict[int, Matrix] = matrices, dtype: Any = anchor.dtype) -> Factor:
                return Factor(matrices[int(split[c])], float(penalty[c]), problem.intercept, K, dtype)

            self._factors.update(zip(users, map_threads(factor, users), strict=True))
            weakest = min([weakest, *(self._factors[c].weakest for c in users)])
        return weakest

    def _room(self, W: Array) -> int:
        """How many Hessians may be taken for some columns: those that are worth it and fit in memory."""
        m, K, d = W.shape
        width = K * d if self._head is None else K * (len(self._head) + 1)
        worth = max(1, round(COEFFICIENTS_A_COLUMN * m / width))
        return max(1, min(worth, self._most))

    def _away(self, samples: Any, columns: Array, places: Sequence[Any]) -> Array:
        """How far the Hessian of each column is from those taken elsewhere, as a share of it, (a, m).

        `samples`, (K, m, b), and those of the places, (K, b), lie where X does; one transfer.
        """
        xp, parts = array_namespace(samples), []
        for some in _some_columns(samples.shape[1], samples.shape[0], samples.shape[2]):
            part = samples[:, some, :]
            held = xp.sum(part, axis=(0, 2))
            apart = [xp.sum(xp.abs(one[:, None, :] - part), axis=(0, 2)) for one in places]
            parts.append(xp.stack([*apart, held, self._squares + xp.zeros_like(held)]))
        *home, held, squares = to_host(
            parts[0] if len(parts) == 1 else xp.concat(parts, axis=1), label="second derivatives"
        )
        # What the penalty adds is the same for both.
        added = self.problem.columns.penalty[columns] * samples.shape[0] * samples.shape[2]
        held = np.maximum(held + added / np.maximum(squares, 1e-300), 1e-300)
        return np.stack(home) / held

    def _samples(self, W: Array, columns: Array) -> Any:
        """Curvatures of some rows at the columns, (K, m, b), where X lies."""
        sample = self._sample
        split = self.problem.columns.split[columns]
        theta = self.problem.to_X(W, split)
        m, K, d = theta.shape
        out: Any = None
        for some in _some_columns(m, K, sample.n_rows):
            part = self.problem.passes.send(theta[some].transpose(1, 0, 2).reshape(-1, d))
            Z = sample.predictors(part)
            xp = array_namespace(Z)
            Z = xp.reshape(Z, (K, -1, sample.n_rows))
            D = self.problem.rowwise.curvature(Z, sample.rows, split[some])[0]
            if Z.shape[1] == m:
                return D
            if out is None:
                out = xp.empty((K, m, sample.n_rows), dtype=D.dtype, device=device(D))
            out[:, some, :] = D
            del Z, D
        return out

    def _sums(self, n_outputs: int) -> int:
        """Numbers of one Hessian, over all atoms."""
        d = (self.problem.passes.origin.size if self._head is None else len(self._head)) + 1
        return len(self.problem.passes.rows) * (n_outputs * d) ** 2

    def _taken(self, W: Array, columns: Array, samples: Sequence[Any]) -> list[_Anchor]:
        """Hessians at some columns."""
        passes, n = self.problem.passes, len(columns)
        whole = self._head is None or self._head.size > 0
        sums = [self._blocks(W[[j]], columns[[j]], self._dtype) for j in range(n) if whole]
        more = [passes.squares(*self._at(W[[j]], columns[[j]])) for j in range(n) if self._head is not None]
        home = passes.to_host(sums + more)
        blocks = home[: len(sums)] or [np.empty((len(passes.rows), 0, 0))] * n
        diagonals: Sequence[Array | None] = home[len(sums) :] or [None] * n
        anchors = []
        for j in range(n):
            own, dtype = blocks[j], self._dtype
            if not np.isfinite(own).all():  # squares of large values overflow in a narrow type
                dtype = np.float64
                [own] = passes.to_host([self._blocks(W[[j]], columns[[j]], dtype)])
            anchors.append(_Anchor(samples[j], own, diagonals[j], dtype))
        return anchors

    def _blocks(self, w: Array, column: Array, dtype: Any) -> Any:
        return self.problem.passes.gram(*self._at(w, column), dtype, self._head)

    def _at(self, w: Array, column: Array) -> tuple[Array, Any]:
        """Coefficients of X at a column, and the curvatures there."""
        split = self.problem.columns.split[column]
        return self.problem.to_X(w, split), partial(self._curvature, split=split)

    def _curvature(self, Z: Any, rows: Any, split: Array) -> tuple[Any, Any]:
        return self.problem.rowwise.curvature(Z, rows, split)

    def _matrix(self, anchor: _Anchor, split: int, n_outputs: int) -> Matrix:
        problem, columns = self.problem, self.problem.columns
        own = int(np.flatnonzero(columns.split == split)[0])

        def of_split(atoms: Array) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):  # it is each thread's own
                return np.asarray(np.tensordot(columns.counts[own], atoms, 1) / columns.weight[own])

        if anchor.diagonals is None:
            block = problem.behind_steps(of_split(anchor.blocks), split, n_outputs)
            return Matrix(np.diagonal(block), block, slice(None))
        diagonal = problem.behind_steps(of_split(anchor.diagonals), split, n_outputs).copy()
        assert self._head is not None
        if not self._head.size:
            return Matrix(diagonal, np.empty((0, 0)), slice(0))
        d = diagonal.size // n_outputs
        place = (np.arange(n_outputs)[:, None] * d + np.append(self._head, d - 1)).ravel()
        block = problem.behind_steps(of_split(anchor.blocks), split, n_outputs, self._head)
        # With another diagonal than its own, which is not exact behind an origin, a block is not positive.
        diagonal[place] = np.diagonal(block)
        return Matrix(diagonal, block, place)


def _some_columns(m: int, K: int, b: int) -> Iterator[slice]:
    """Columns to work on at a time, of `m` with K outputs each, on b rows."""
    return cast(Iterator[slice], row_blocks(slice(0, m), block_size(_at_once(K, b))))


def _at_once(K: int, b: int) -> int:
    return max(1, int(WORKED_ON / (K * b * (OF_ONE if K == 1 else OF_MORE))))


def _chosen(away: Array, own: Array, share: float, room: int) -> list[int]:
    """Columns to take new Hessians at, farthest first, until all columns have one near or there is no room.

    Parameters
    ----------
    away : ndarray of shape (a, m)
        Distances of the columns from Hessians that are there.
    own : ndarray of shape (m, m)
        Distances of the columns from those that would be taken at each other.
    share : float
        What is near.
    room : int
        How many may be taken.
    """
    chosen: list[int] = []
    nearest = away.min(axis=0) if len(away) else np.full(own.shape[1], np.inf)
    while len(chosen) < room and (nearest > share).any():
        # The first of all serves all as well as one can.
        j = int(nearest.argmax()) if np.isfinite(nearest).all() else int(own.sum(axis=1).argmin())
        chosen.append(j)
        nearest = np.minimum(nearest, own[j])
    return chosen
