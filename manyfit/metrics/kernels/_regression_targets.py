"""Targets, weights and predictions of numbers in one precision, and what metrics of them have in common."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of
from manyfit.metrics.kernels._kernel import Targets

Array = Any
T = TypeVar("T")

# Predictions of one block of rows on the host: with temporary arrays they stay in a second-level cache, which
# takes a third off the time of a mean squared error of a million rows.
BLOCK = 1 << 17


@dataclass(frozen=True)
class Rows:
    """Targets and weights as kernels compute with them, made once for all settings of one dtype.

    Attributes
    ----------
    y : array of shape (n,) or (n, q)
        Targets, q > 1.
    weight : array of shape (n,) or (n, 1), or None
        In the dtype of `y`.
    """

    y: Array
    weight: Array
    known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def xp(self) -> Any:
        """Namespace of the arrays."""
        return array_namespace(self.y)

    @cached_property
    def total(self) -> Any:
        """Sum of the weights; NaN where scikit-learn would divide by zero."""
        if self.weight is None:
            return self.y.shape[0] or float("nan")
        total = self.xp.sum(self.weight)
        return or_nan(self.xp, total, total != 0)

    @cached_property
    def center(self) -> Array:
        """Weighted mean of the targets, of shape () or (q,)."""
        if self.weight is None:
            return self.xp.mean(self.y, axis=0)
        return self.xp.sum(self.y * self.weight, axis=0) / self.total

    @cached_property
    def spread(self) -> Array:
        """Weighted variance of the targets, of shape (1,) or (1, q)."""
        return self.means(squared, repeated(self, self.center[None, ...]), self.y)

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What depends on targets and options only, from the first block of settings to the last."""
        if key not in self.known:
            self.known[key] = make()
        found: T = self.known[key]
        return found

    def means(self, loss: Callable[..., Array], P: Array, *columns: Array) -> Array:
        """Weighted means of a loss over rows.

        Parameters
        ----------
        loss : callable
            ``loss(xp, P, *columns)`` of some rows, elementwise, in a new array: in place where it can, since
            the host would spend more time on fresh memory than on the numbers.
        P : array of shape (m, n) or (m, n, q)
            Predictions of m settings.
        *columns : arrays of shape (n,) or (n, q)
            What else it reads.

        Returns
        -------
        array of shape (m,) or (m, q)
        """
        n, sums = P.shape[1], []
        # Whatever the number of settings, so that a score does not depend on which others are asked for.
        step = max(1, BLOCK // (1 if P.ndim == 2 else P.shape[2]) if isinstance(P, np.ndarray) else n)
        for j in range(0, max(n, 1), step):
            rows = slice(j, j + step)
            losses = loss(self.xp, P[:, rows, ...], *(column[rows, ...] for column in columns))
            if self.weight is not None:
                losses *= self.weight[rows, ...]
            sums.append(self.xp.sum(losses, axis=1))
        total = sums[0] if len(sums) == 1 else self.xp.sum(self.xp.stack(sums), axis=0)
        return total / self.total


def squared(xp: Any, P: Array, y: Array) -> Array:
    """Squared residuals."""
    residuals = y - P
    residuals *= residuals
    return residuals


def repeated(rows: Rows, predicted: Array) -> Array:
    """The same prediction, of shape (1,) or (1, q), for all rows."""
    return rows.xp.broadcast_to(predicted[:, None, ...], (1, *rows.y.shape))


def rows_of(targets: Targets, P: Array) -> tuple[Rows, Array]:
    """Targets and predictions in one precision, a single output without an axis of its own.

    References
    ----------
    sklearn.metrics._regression._check_reg_targets_with_floating_dtype (1.7 to 1.9).
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
        given = [a.dtype for a in (y, P, weight) if a is not None and xp.isdtype(a.dtype, "real floating")]
        dtype = xp.result_type(*given) if given else float_dtype(P)
        w = None if weight is None else xp.astype(weight, dtype, copy=False)
        rows = Rows(xp.astype(y, dtype, copy=False), w if w is None or y.ndim == 1 else w[:, None])
        targets.rows[P.dtype] = rows
    return rows, P if P.dtype == rows.y.dtype else xp.astype(P, rows.y.dtype)


def only_output(rows: Rows, who: str) -> None:
    """Raise scikit-learn's error if there are several outputs."""
    if rows.y.ndim > 1:
        raise ValueError(f"Multioutput not supported in {who}")


def constant(xp: Any, value: float, like: Array) -> Array:
    """A number in the dtype of an array, where it lies, without a transfer."""
    return xp.full((), value, dtype=like.dtype, device=device(like))


def or_nan(xp: Any, values: Array, allowed: Array) -> Array:
    """Values where they are allowed, else NaN."""
    if isinstance(values, np.ndarray | np.generic):
        return np.where(allowed, values, values.dtype.type(np.nan))
    return xp.where(allowed, values, constant(xp, float("nan"), values))


def finite(xp: Any, values: Array) -> Array:
    """NaN for settings with a value that is not finite: scikit-learn refuses what it comes from."""
    return or_nan(xp, values, all_finite(xp, values))


def all_finite(xp: Any, values: Array) -> Array:
    """Which settings have finite values only, of shape (m,) or (m, 1) of some outputs."""
    known = xp.isfinite(values)
    return known if values.ndim == 1 else xp.all(known, axis=1, keepdims=True)


def over_outputs(
    xp: Any, values: Array, multioutput: Any, weight: Array = None, weigh_one: bool = False
) -> Array:
    """One number a setting from (m,) or (m, q) of its outputs, or all of them.

    Parameters
    ----------
    xp : module
        Namespace of the values.
    values : array of shape (m,) or (m, q)
        Errors or scores.
    multioutput : {"raw_values", "uniform_average", "variance_weighted"}, None, or array of shape (q,)
        As in scikit-learn.
    weight : array of shape (1,) or (1, q), optional
        Variances; without them "variance_weighted" is not allowed.
    weigh_one : bool
        Whether a single output may have a weight.

    Returns
    -------
    array of shape (m,), or (m, q) of "raw_values"
    """
    q = 1 if values.ndim == 1 else values.shape[1]
    named = multioutput is None or isinstance(multioutput, str)
    if isinstance(multioutput, str) and multioutput not in (
        "raw_values",
        "uniform_average",
        *(() if weight is None else ("variance_weighted",)),
    ):
        raise ValueError(f"multioutput={multioutput!r} is not allowed for this metric.")
    if not named:
        given = multioutput if hasattr(multioutput, "__array_namespace__") else np.asarray(multioutput)
        if q == 1 and not weigh_one:
            raise ValueError("Custom weights are useful only in multi-output cases.")
        if tuple(given.shape) != (q,):
            raise ValueError(
                f"There must be equally many custom weights ({given.shape[0]}) as outputs ({q})."
            )
        weight = xp.astype(to_device_of(given, values), values.dtype)[None, :]
        values = values[:, None] if values.ndim == 1 else values
    if named and multioutput == "raw_values":
        return values if values.ndim == 2 else values[:, None]
    if values.ndim == 1:
        return values
    if multioutput is None or (named and multioutput == "uniform_average"):
        return xp.mean(values, axis=1)
    if named:
        weight = xp.where(xp.any(weight != 0), weight, constant(xp, 1.0, weight))
    total = xp.sum(weight, axis=1)
    return xp.sum(values * weight, axis=1) / or_nan(xp, total, total != 0)
