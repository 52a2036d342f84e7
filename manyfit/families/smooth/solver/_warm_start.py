"""Starts for smaller penalties from the ends of the paths with larger ones."""

from typing import Any

import numpy as np

from manyfit.families.protocol import Array


class WarmStart:
    """Extrapolates the ends of the sets, (n_sets, K, d), from `start`, in the logarithm of the penalty.

    A further step in the logarithm is mostly a change of the same length.
    """

    def __init__(self, start: Array) -> None:
        self._ends, self._slope, self._depth, self._step = start, np.zeros_like(start), np.nan, 0.0

    def update(self, ends: Array, penalty: float) -> None:
        """Note the ends of the sets for a penalty."""
        depth = float(_depth(penalty))
        step = depth - self._depth  # NaN at first: the way from the start says nothing
        self._slope = (ends - self._ends) / step if step > 0.0 else np.zeros_like(ends)
        self._ends, self._depth, self._step = ends, depth, step

    def points(self, penalties: Array) -> Array:
        """Points to start at, (n_sets m, K, d), no farther ahead than the last step."""
        ahead = np.nan_to_num(np.clip(_depth(penalties) - self._depth, 0.0, self._step))
        points = self._ends[:, None] + ahead[:, None, None] * self._slope[:, None]
        return points.reshape(-1, *self._ends.shape[1:])


def _depth(penalties: Any) -> Any:
    """Minus the logarithm of penalties; no penalty is the deepest."""
    return -np.log(np.maximum(penalties, np.finfo(np.float64).tiny))
