"""L-BFGS for many problems at once: a step evaluates all gradients, and each column has its step length.

A solver is settings and a state; the problem gives it gradients and an approximate inverse of the Hessian. It
evaluates only gradients: a convex function whose gradient vanishes is at its minimum, so that the norm of the
gradient certifies every answer.

Reference: Nocedal, Wright: Numerical Optimization (2006), section 7.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from manyfit.arrays import array_namespace, device

Array = Any

# Pairs of steps and gradient changes that are kept.
MEMORY = 8
# A step is taken if the slope at its end is at most this part of the slope at its start.
MAX_SLOPE = 0.5


class Problem(Protocol):
    """Convex problems, one a column, over coefficients of shape (m, K, d): m columns with K outputs."""

    def gradient(self, W: Array, columns: Array) -> Array:
        """Gradients of some columns at `W`, of the shape of `W`; one pass over the data."""

    def size(self, G: Array, columns: Array) -> Array:
        """The norm of each gradient that convergence is judged by, (m,)."""

    def precondition(self, G: Array, columns: Array) -> Array:
        """An approximate inverse Hessian of each column times its gradient; symmetric and positive."""


@dataclass(frozen=True)
class LBFGS:
    """The solver, which gives up after `max_passes` evaluations of gradients, or `max_steps` steps."""

    max_passes: int = 200
    max_steps: int | None = None

    def solve(
        self, problem: Problem, state: "State", tol: Array, worth: Callable[[int], int] | None = None
    ) -> "Solution":
        """Follow the columns of a state, which is changed, until the size of each gradient is at most `tol`.

        `tol` is (m,). ``worth(n_left)`` limits the passes by what the caller could do better with the columns
        that are left.
        """
        xp = array_namespace(state.W)
        place = xp.arange(state.columns.shape[0], device=device(state.W))
        finished: list[tuple[Array, ...]] = []
        limit, steps, passes = self.max_passes, 0, 0
        while True:
            done = problem.size(state.G, state.columns) <= tol
            # One synchronisation a step.
            n_done = int(xp.count_nonzero(done))
            if worth is not None:
                limit = min(self.max_passes, worth(done.shape[0] - n_done))
            left = (place, state.W, state.G, done, state.curvature, state.overshoot, state.steps)
            if n_done == done.shape[0] or passes >= limit or steps == self.max_steps:
                finished.append(left)
                state.keep(xp.nonzero(~done)[0])
                break
            if n_done:
                out, kept = xp.nonzero(done)[0], xp.nonzero(~done)[0]
                finished.append(tuple(xp.take(A, out, axis=0) for A in left))
                state.keep(kept)
                place, tol = xp.take(place, kept), xp.take(tol, kept)
            passes += self._step(problem, state, limit - passes)
            steps += 1
        order, *found = (xp.concat(parts, axis=0) for parts in zip(*finished, strict=True))
        back = xp.argsort(order)
        W, G, converged, curvature, overshoot, taken = (xp.take(A, back, axis=0) for A in found)
        return Solution(W, G, converged, curvature, overshoot, taken, passes, state)

    # A loss that overflows has a slope that is not finite, and the step is shortened.
    @np.errstate(over="ignore", invalid="ignore")
    def _step(self, problem: Problem, state: "State", budget: int) -> int:
        """One step of all columns of the state; returns the passes it took."""
        xp = array_namespace(state.W)
        D = -state.direction(lambda G: problem.precondition(G, state.columns))
        slope = _dot(state.G, D)
        W = state.W + D
        G = problem.gradient(W, state.columns)
        length, passes = xp.ones_like(slope), 1
        while True:
            end = _dot(G, D)
            state.overshoot = xp.maximum(state.overshoot, _ratio(end, slope))
            # NaN compares as too steep.
            steep = ~(end <= MAX_SLOPE * xp.abs(slope))
            if not bool(xp.any(steep)):
                break
            if passes >= budget:
                # No passes are left to shorten these steps: the columns stay.
                W, G = _where(steep, state.W, W), _where(steep, state.G, G)
                break
            # The slope of a convex function rises along the step: about where it would cross zero.
            rise = end - slope
            risen = xp.isfinite(rise) & (rise > 0.0)
            ratio = xp.where(risen, -slope / xp.where(risen, rise, xp.ones_like(rise)), xp.zeros_like(rise))
            length = xp.where(steep, length * xp.clip(ratio, 0.1, 0.9), length)
            W = state.W + length[:, None, None] * D
            open_ = xp.nonzero(steep)[0]
            again = problem.gradient(xp.take(W, open_, axis=0), xp.take(state.columns, open_))
            # The position of each open column among the open ones.
            among = xp.clip(xp.cumulative_sum(xp.astype(steep, xp.int64)) - 1, 0, None)
            G = _where(steep, xp.take(again, among, axis=0), G)
            passes += 1
        state.move(W, G)
        return passes


@dataclass
class Solution:
    """Ends of the columns: coefficients `W`, gradients `G`, (m, K, d), and whether they `converged`, (m,).

    `curvature`, (m,), is the largest that the steps met, a lower bound of the largest eigenvalue of the
    Hessians on the way, 0 before the first step. `overshoot`, (m,), is the largest slope at the end of a
    tried step, relative to that at its start, infinite if the loss overflowed. `steps`, (m,), counts the
    steps; `passes` those over the data. `left` holds the columns that did not converge, in their order.
    """

    W: Array
    G: Array
    converged: Array
    curvature: Array
    overshoot: Array
    steps: Array
    passes: int
    left: "State"


class State:
    """Columns that have not converged, and the pairs that tell their curvature, none at first.

    A problem knows its columns, (m,), by `columns`; `W` and `G`, (m, K, d), are where they are.
    The pairs of a column are contiguous, so that the two-loop recursion is four products with all of them,
    and a small one with their inner products. `S` and `Y`, (m, memory, K d), are steps and gradient changes,
    `inverse`, (m, memory), one over their inner products (zero for a useless pair), `cross`, (m, memory,
    memory), is ``S_i' Y_j``. `order` lists the places in use, the oldest first. `curvature`, `overshoot` and
    `steps` are as in `Solution`.
    """

    def __init__(self, columns: Array, W: Array, G: Array, memory: int = MEMORY) -> None:
        self.columns, self.W, self.G, self.memory = columns, W, G, memory
        xp, (m, K, d) = array_namespace(W), W.shape
        kind = {"dtype": W.dtype, "device": device(W)}
        self.S, self.Y = (xp.zeros((m, memory, K * d), **kind) for _ in range(2))
        self.inverse, self.cross = xp.zeros((m, memory), **kind), xp.zeros((m, memory, memory), **kind)
        self.curvature, self.overshoot = (xp.zeros((m,), **kind) for _ in range(2))
        self.steps = xp.zeros((m,), dtype=xp.int64, device=device(W))
        self.order: list[int] = []

    def keep(self, kept: Array) -> None:
        """Only some of the columns."""
        xp = array_namespace(self.W)
        for name in ("columns", "W", "G", "S", "Y", "inverse", "cross", "curvature", "overshoot", "steps"):
            setattr(self, name, xp.take(getattr(self, name), kept, axis=0))

    def direction(self, precondition: Callable[[Array], Array]) -> Array:
        """The inverse Hessian times the gradient, by the two-loop recursion."""
        xp, n = array_namespace(self.W), len(self.order)
        if n == 0:
            return precondition(self.G)
        r, cross = self.inverse, self.cross
        flat = xp.reshape(self.G, (self.G.shape[0], -1))
        seen = _times(self.S[:, :n, :], flat)
        a: dict[int, Array] = {}
        for i in reversed(self.order):
            newer = sum((a[j] * cross[:, i, j] for j in a), start=xp.zeros_like(r[:, i]))
            a[i] = r[:, i] * (seen[:, i] - newer)
        Q = flat - _combined(xp.stack([a[i] for i in range(n)], axis=1), self.Y[:, :n, :])
        out = xp.reshape(precondition(xp.reshape(Q, self.G.shape)), flat.shape)
        out = self._scale(precondition)[:, None] * out
        seen = _times(self.Y[:, :n, :], out)
        b: dict[int, Array] = {}
        for i in self.order:
            older = sum((b[j] * cross[:, j, i] for j in b), start=xp.zeros_like(r[:, i]))
            b[i] = a[i] - r[:, i] * (seen[:, i] + older)
        more = _combined(xp.stack([b[i] for i in range(n)], axis=1), self.S[:, :n, :])
        return xp.reshape(out + more, self.G.shape)

    def _scale(self, precondition: Callable[[Array], Array]) -> Array:
        """Factor that fits the preconditioner to the newest pair, (m,); 1 if the pair is useless."""
        xp, newest = array_namespace(self.W), self.order[-1]
        y = self.Y[:, newest, :]
        along = _dot(y, precondition(xp.reshape(y, self.G.shape)))
        r, one = self.inverse[:, newest], xp.ones_like(along)
        sound = (r > 0.0) & (along > 0.0)
        return xp.where(sound, one / xp.where(sound, r * along, one), one)

    def move(self, W: Array, G: Array) -> None:
        """Move to `W`, where the gradient is `G`, and keep the pair."""
        xp, m = array_namespace(W), W.shape[0]
        s, y = xp.reshape(W - self.W, (m, -1)), xp.reshape(G - self.G, (m, -1))
        self.W, self.G, self.steps = W, G, self.steps + 1
        along, across = _dot(s, y), _dot(y, y)
        # A pair is useless if it is rounding, or if the step led nowhere.
        sound = along > 1e-14 * xp.sqrt(_dot(s, s) * across)
        one = xp.ones_like(along)
        place = len(self.order) if len(self.order) < self.memory else self.order.pop(0)
        self.order.append(place)
        self.inverse[:, place] = xp.where(sound, one / xp.where(sound, along, one), xp.zeros_like(one))
        met = across * self.inverse[:, place]
        self.curvature = xp.where(met > self.curvature, met, self.curvature)
        self.S[:, place, :], self.Y[:, place, :] = s, y
        self.cross[:, place, :], self.cross[:, :, place] = _times(self.Y, s), _times(self.S, y)


def _ratio(end: Array, start: Array) -> Array:
    """Slopes relative to the size of those at the start; infinite if not finite, and 0 for 0 by 0."""
    xp = array_namespace(end)
    size = xp.abs(start)
    ratio = end / xp.where(size > 0.0, size, xp.ones_like(size))
    ratio = xp.where(xp.isfinite(ratio), ratio, xp.full_like(ratio, xp.inf))
    return xp.where(size == 0.0, xp.zeros_like(size), ratio)


def _times(A: Array, v: Array) -> Array:
    """Inner products of the rows of each matrix, (m, k, D), with one vector each, (m, D)."""
    return (A @ v[:, :, None])[:, :, 0]


def _combined(a: Array, A: Array) -> Array:
    """Sums of the rows of each matrix, (m, k, D), with factors (m, k)."""
    return (a[:, None, :] @ A)[:, 0, :]


def _where(chosen: Array, A: Array, B: Array) -> Array:
    """The columns of `A` where they are chosen, else those of `B`."""
    return array_namespace(A).where(chosen[:, None, None], A, B)


def _dot(A: Array, B: Array) -> Array:
    """Inner products of the columns."""
    m = A.shape[0]
    xp = array_namespace(A)
    return xp.vecdot(xp.reshape(A, (m, -1)), xp.reshape(B, (m, -1)))
