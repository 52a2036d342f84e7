"""Targets, weights and predictions of regression in one precision, and steps that its metrics share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of
from manyfit.metrics.kernels._kernel import Targets, is_floating, or_nan, row_sums

Array = Any
T = TypeVar("T")

# Predictions in one block of rows on the host: with temporary arrays they stay in a second-level cache, which
# saves a third of the time for the mean squared error of a million rows.
BLOCK = 1 << 17


@dataclass(frozen=True)
class FloatTargets:
    """Targets, (n,) or (n, q) with q > 1, and weights, (n,) or (n, 1), in the dtype of the computation."""

    xp: Any  # namespace of the arrays
    y: Array
    weight: Array
    known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def total(self) -> Any:
        """Sum of the weights; NaN where scikit-learn would divide by zero."""
        if self.weight is None:
            return self.y.shape[0] or float("nan")
        total = self.xp.sum(self.weight)
        return or_nan(total, total != 0)

    @cached_property
    def center(self) -> Array:
        """Weighted mean of the targets, () or (q,)."""
        if self.weight is None:
            return row_sums(self.y, axis=0) / self.total
        return self.xp.sum(self.y * self.weight, axis=0) / self.total

    @cached_property
    def spread(self) -> Array:
        """Weighted variance of the targets, (1,) or (1, q)."""
        return self.means(lambda xp, y: squared(xp, y, self.center), self.y[None, ...])

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """A value that depends on targets and options only, computed for the first block of settings."""
        if key not in self.known:
            self.known[key] = make()
        found: T = self.known[key]
        return found

    def means(self, loss: Callable[..., Array], P: Array, *columns: Array) -> Array:
        """Weighted means over rows, (m,) or (m, q), of an elementwise ``loss(xp, P, *columns)``, a new array.

        `P` is (m, n) or (m, n, q), columns are (n,) or (n, q). A loss works in place where it can, since on
        the host fresh memory takes longer than the numbers.
        """
        n, sums = P.shape[1], []
        # Independent of the number of settings, so that a score does not depend on the others.
        step = max(1, BLOCK // (1 if P.ndim == 2 else P.shape[2]) if isinstance(P, np.ndarray) else n)
        for j in range(0, max(n, 1), step):
            rows = slice(j, j + step)
            losses = loss(self.xp, P[:, rows, ...], *(column[rows, ...] for column in columns))
            if self.weight is not None:
                losses *= self.weight[rows, ...]
            sums.append(row_sums(losses, axis=1))
        total = sums[0] if len(sums) == 1 else self.xp.sum(self.xp.stack(sums), axis=0)
        return total / self.total


def squared(xp: Any, P: Array, y: Array) -> Array:
    """Squared residuals."""
    residuals = y - P
    residuals *= residuals
    return residuals


def repeat_prediction(rows: FloatTargets, predicted: Array) -> Array:
    """One prediction, (1,) or (1, q), for all rows."""
    return rows.xp.broadcast_to(predicted[:, None, ...], (1, *rows.y.shape))


def float_targets(targets: Targets, P: Array) -> tuple[FloatTargets, Array]:
    """Targets and predictions in scikit-learn's precision, without an axis for a single output.

    See ``sklearn.metrics._regression._check_reg_targets_with_floating_dtype`` (1.7 to 1.9).
    """
    xp, y, weight = array_namespace(P), targets.numbers, targets.weight
    if P.ndim == 3 and P.shape[2] == 1:
        P = xp.reshape(P, P.shape[:2])
    if y.ndim == 2 and y.shape[1] == 1:
        y = xp.reshape(y, (y.shape[0],))
    if y.shape != P.shape[1:]:
        raise ValueError(
            f"Predictions of several settings need the shape (m, *y_true.shape), got {tuple(P.shape)} for "
            f"y_true of shape {tuple(y.shape)}."
        )
    rows = targets.rows.get(P.dtype)
    if rows is None:
        given = [a.dtype for a in (y, P, weight) if a is not None and is_floating(a)]
        dtype = xp.result_type(*given) if given else float_dtype(P)
        w = None if weight is None else xp.astype(weight, dtype, copy=False)
        w = w if w is None or y.ndim == 1 else w[:, None]
        rows = FloatTargets(xp, xp.astype(y, dtype, copy=False), w)
        targets.rows[P.dtype] = rows
    return rows, P if P.dtype == rows.y.dtype else xp.astype(P, rows.y.dtype)


def require_one_output(rows: FloatTargets, metric: str) -> None:
    """Raise scikit-learn's error for several outputs."""
    if rows.y.ndim > 1:
        raise ValueError(f"Multioutput not supported in {metric}")


def constant(xp: Any, value: float, like: Array) -> Array:
    """A number in the dtype and on the device of an array, without a transfer."""
    return xp.full((), value, dtype=like.dtype, device=device(like))


def nan_unless_finite(xp: Any, values: Array) -> Array:
    """NaN for settings with a value that is not finite: scikit-learn refuses its cause."""
    return or_nan(values, finite_settings(xp, values))


def finite_settings(xp: Any, values: Array) -> Array:
    """Which settings have finite values only, (m,), or (m, 1) for several outputs."""
    known = xp.isfinite(values)
    return known if values.ndim == 1 else xp.all(known, axis=1, keepdims=True)


def average_outputs(
    xp: Any, values: Array, multioutput: Any, weight: Array = None, weigh_one: bool = False
) -> Array:
    """Scores (m,) from values of outputs, (m,) or (m, q), or all values for "raw_values", as in scikit-learn.

    `weight`, (1,) or (1, q), are variances; without them "variance_weighted" is refused. `weigh_one` allows a
    weight for a single output.
    """
    columns = values if values.ndim == 2 else values[:, None]
    q = columns.shape[1]
    if multioutput is None or isinstance(multioutput, str):
        if multioutput not in (None, "raw_values", "uniform_average") and (
            multioutput != "variance_weighted" or weight is None
        ):
            raise ValueError(f"multioutput={multioutput!r} is not allowed for this metric.")
        if multioutput == "raw_values":
            return columns
        if values.ndim == 1:
            return values
        if multioutput != "variance_weighted":
            return xp.mean(values, axis=1)
        weight = xp.where(xp.any(weight != 0), weight, constant(xp, 1.0, weight))
    else:
        given = multioutput if hasattr(multioutput, "__array_namespace__") else np.asarray(multioutput)
        if q == 1 and not weigh_one:
            raise ValueError("Custom weights are useful only in multi-output cases.")
        if tuple(given.shape) != (q,):
            raise ValueError(
                f"There must be equally many custom weights ({given.shape[0]}) as outputs ({q})."
            )
        weight = xp.astype(to_device_of(given, values), values.dtype)[None, :]
    total = xp.sum(weight, axis=1)
    return xp.sum(columns * weight, axis=1) / or_nan(total, total != 0)
