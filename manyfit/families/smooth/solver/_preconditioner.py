"""Approximate Hessians: a few serve many columns, each of which is solved with its own penalty.

A Hessian is a sum over the rows, so that one product over the rows of each atom gives the Hessians of all
splits. Settings with similar curvatures share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from manyfit.arrays import array_namespace
from manyfit.families.protocol import Array
from manyfit.families.smooth.solver._curvatures import CurvatureSamples, choose_references
from manyfit.families.smooth.solver._factor import HessianFactor, PartialHessian
from manyfit.families.smooth.solver._lbfgs import Problem
from manyfit.families.smooth.solver._objective import LinearProblem
from manyfit.folds import RowSample, map_threads

# A Hessian of d K coefficients takes the operations of d K / 4 passes over one column. They are products of
# narrow matrices, which take twice as long. It saves a dozen or two passes of each column that it serves, so
# it should serve d K / 130 columns.
COEFFICIENTS_A_COLUMN = 130
# Hessians are summed and factored in single precision, which takes half the time, unless a pivot of a factor
# is less than this share of its diagonal: the rounding of the other entries would then hide it.
WEAK = 1e-4
# Numbers of Hessians that one transfer copies from a device, if there are several: 1 MiB. The wait for them
# is short beside their summation.
TRANSFERRED = 2**17


@dataclass(frozen=True)
class _ReferenceHessian:
    """A Hessian that was taken at some column.

    `sample`, (K, b), are curvatures of some rows, where X lies. `blocks`, (n_atoms, k, k), are sums over each
    atom for the coefficients that are known whole, in precision `dtype`. `diagonals`, (n_atoms, K d), are
    sums for all coefficients, None if all are known whole.
    """

    sample: Any
    blocks: Array
    diagonals: Array | None
    dtype: Any


class Hessians(Problem):
    """A linear problem with the Hessians that precondition its columns.

    `head` are the features between which, and the intercepts, second derivatives are known whole, None for
    all; of the others only the diagonal is known. With steps it is None or empty. Curvatures are compared on
    `sample`. At most `most` Hessians are kept; beyond them the nearest serves. `dtype` is the first
    precision.
    """

    def __init__(
        self,
        problem: LinearProblem,
        head: Array | None,
        sample: RowSample,
        most: int,
        dtype: Any = np.float32,
    ) -> None:
        self.problem, self._head, self._most, self._dtype = problem, head, most, dtype
        self._curvatures = CurvatureSamples(problem, sample)
        self._references: list[_ReferenceHessian] = []  # the newest last
        self._used: dict[int, _ReferenceHessian] = {}
        self._factors: dict[int, HessianFactor] = {}
        # The Hessians of the factors, by weak references: those that are not kept take no memory.
        self._factored: WeakValueDictionary[int, _ReferenceHessian] = WeakValueDictionary()

    def gradient(self, W: Array, columns: Array) -> Array:
        return self.problem.gradient(W, columns)

    def size(self, G: Array, columns: Array) -> Array:
        return self.problem.size(G, columns)

    def precondition(self, G: Array, columns: Array) -> Array:
        """The inverse of the Hessian of each column times its gradient, (m, K, d)."""
        flat = G.reshape(len(G), -1)
        out = np.empty(flat.shape)
        for j, c in enumerate(map(int, columns)):
            out[j] = self._factors[c].solve(flat[j])
        return out.reshape(G.shape)

    def renew(self, W: Array, columns: Array, share: float) -> None:
        """Give some columns Hessians near their coefficients `W`, (m, K, d).

        A Hessian serves a column if their curvatures differ by at most `share`.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # `HessianFactor` leaves out infinity and NaN
            self._choose(W, columns, share)
            weakest = self._factor(columns)
            if weakest < WEAK and self._dtype != np.float64:
                self._dtype = np.float64
                self._choose(W, columns, share)
                self._factor(columns)

    def release(self, columns: Array) -> None:
        """Forget the factors of some columns; the Hessians stay for others while there is room."""
        for c in map(int, columns):
            self._factors.pop(c, None)
            self._factored.pop(c, None)

    def _choose(self, W: Array, columns: Array, share: float) -> None:
        """Find a Hessian for each column, and take the missing ones."""
        samples = self._curvatures.at(W, columns)
        eps = np.finfo(self._dtype).eps
        known = [one for one in self._references if np.finfo(one.dtype).eps <= eps]
        own = [samples[:, j, :] for j in range(len(columns))]
        both = self._curvatures.distances(samples, columns, [*(one.sample for one in known), *own])
        distances, mutual = both[: len(known)], both[len(known) :]
        chosen = choose_references(distances, mutual, share, self._room(W))
        distances = np.concatenate([distances, mutual[chosen]])
        kept = self._kept(distances, len(known), len(chosen))
        nearest = distances[[*kept, *range(len(known), len(distances))]].argmin(axis=0)
        self._references, self._used = [known[a] for a in kept], {}
        # Memory of the samples and of the Hessians that are not kept is free before others are taken. Copies:
        # a view would keep the samples of all columns.
        xp = array_namespace(samples)
        new = [xp.asarray(own[j], copy=True) for j in chosen]
        del samples, own, known
        # One transfer for several, if their sums over all atoms take little memory where X lies.
        d = (self.problem.passes.origin.size if self._head is None else len(self._head)) + 1
        step = max(1, TRANSFERRED // (len(self.problem.passes.rows) * (W.shape[1] * d) ** 2))
        for first in range(0, len(chosen), step):
            some = chosen[first : first + step]
            self._references += self._take(W[some], columns[some], new[first : first + step])
        for c, a in zip(map(int, columns), nearest, strict=True):
            self._used[c] = self._references[a]

    def _kept(self, distances: Array, n_known: int, n_new: int) -> list[int]:
        """Positions of the Hessians that stay: those in use, then the newest, as far as there is room."""
        serving = set(distances.argmin(axis=0).tolist())
        too_many = max(0, n_known + n_new - self._most)
        return sorted(sorted(range(n_known), key=lambda a: (a in serving, a))[too_many:])

    def _factor(self, columns: Array) -> float:
        """Factor the new Hessians of some columns; returns the weakest pivot."""
        problem, K = self.problem, self.problem.rowwise.loss.n_outputs
        split, penalty = problem.columns.split, problem.columns.penalty
        weakest = 1.0
        for reference in self._references:
            users = [
                c
                for c in map(int, columns)
                if self._used[c] is reference and self._factored.get(c) is not reference
            ]
            splits = sorted({int(split[c]) for c in users})
            found = map_threads(partial(self._hessian, reference, n_outputs=K), splits)
            hessians = dict(zip(splits, found, strict=True))

            def factor(
                c: int, known: dict[int, PartialHessian] = hessians, dtype: Any = reference.dtype
            ) -> Any:
                return HessianFactor(known[int(split[c])], float(penalty[c]), problem.intercept, K, dtype)

            self._factors.update(zip(users, map_threads(factor, users), strict=True))
            self._factored.update(dict.fromkeys(users, reference))
            weakest = min([weakest, *(self._factors[c].weakest for c in users)])
        return weakest

    def _room(self, W: Array) -> int:
        """Hessians that may be taken for some columns: they should pay, and fit in memory."""
        m, K, d = W.shape
        width = K * d if self._head is None else K * (len(self._head) + 1)
        worth = max(1, round(COEFFICIENTS_A_COLUMN * m / width))
        return max(1, min(worth, self._most))

    def _take(self, W: Array, columns: Array, samples: Sequence[Any]) -> list[_ReferenceHessian]:
        """Sum the Hessians at some columns."""
        passes, n = self.problem.passes, len(columns)
        whole = self._head is None or self._head.size > 0
        sums = [self._blocks(W[[j]], columns[[j]], self._dtype) for j in range(n) if whole]
        more = [passes.squares(*self._at(W[[j]], columns[[j]])) for j in range(n) if self._head is not None]
        found = passes.to_host(sums + more)
        blocks = found[: len(sums)] or [np.empty((len(passes.rows), 0, 0))] * n
        diagonals: Sequence[Array | None] = found[len(sums) :] or [None] * n
        references = []
        for j in range(n):
            own, dtype = blocks[j], self._dtype
            if not np.isfinite(own).all():  # squares of large values overflow in single precision
                dtype = np.float64
                [own] = passes.to_host([self._blocks(W[[j]], columns[[j]], dtype)])
            references.append(_ReferenceHessian(samples[j], own, diagonals[j], dtype))
        return references

    def _blocks(self, w: Array, column: Array, dtype: Any) -> Any:
        return self.problem.passes.gram(*self._at(w, column), dtype, self._head)

    def _at(self, w: Array, column: Array) -> tuple[Array, Any]:
        """Coefficients of X at a column, and its curvatures as a callback."""
        split = self.problem.columns.split[column]
        return self.problem.to_X(w, split), partial(self.problem.rowwise.curvature, splits=split)

    def _hessian(self, reference: _ReferenceHessian, split: int, n_outputs: int) -> PartialHessian:
        problem, columns = self.problem, self.problem.columns
        own = int(np.flatnonzero(columns.split == split)[0])

        def of_split(atoms: Array) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):  # set for each thread
                return np.asarray(np.tensordot(columns.counts[own], atoms, 1) / columns.weight[own])

        if reference.diagonals is None:
            block = problem.behind_steps(of_split(reference.blocks), split, n_outputs)
            return PartialHessian(np.diagonal(block), block, slice(None))
        diagonal = problem.behind_steps(of_split(reference.diagonals), split, n_outputs).copy()
        assert self._head is not None
        if not self._head.size:
            return PartialHessian(diagonal, np.empty((0, 0)), slice(0))
        d = diagonal.size // n_outputs
        place = (np.arange(n_outputs)[:, None] * d + np.append(self._head, d - 1)).ravel()
        block = problem.behind_steps(of_split(reference.blocks), split, n_outputs, self._head)
        # The block needs its own diagonal to be positive: behind an origin the other one is not exact.
        diagonal[place] = np.diagonal(block)
        return PartialHessian(diagonal, block, place)
