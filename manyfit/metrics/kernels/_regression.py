"""Regression metrics of many settings at once, by scikit-learn's formulas, on any device.

A loss is elementwise: ``loss(xp, P, *columns)`` of predictions (m, b) or (m, b, q) and of columns (b,) or (b,
q) that depend on the targets only. Where scikit-learn refuses values, a loss is NaN or infinite and the score
is NaN, and so is a score that overflows: no check waits for the device.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import (
    d2_absolute_error_score,
    d2_pinball_score,
    d2_tweedie_score,
    explained_variance_score,
    max_error,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    mean_squared_log_error,
    mean_tweedie_deviance,
    median_absolute_error,
    r2_score,
    root_mean_squared_error,
    root_mean_squared_log_error,
)

from manyfit.arrays import device
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import MetricKernel, Targets, or_nan
from manyfit.metrics.kernels._quantiles import medians, quantiles_of_rows
from manyfit.metrics.kernels._regression_targets import (
    FloatTargets,
    average_outputs,
    constant,
    finite_settings,
    float_targets,
    nan_unless_finite,
    repeat_prediction,
    require_one_output,
    squared,
)

Array = Any
Kernel = Callable[..., Array]


# Means of losses


def absolute(xp: Any, P: Array, y: Array) -> Array:
    return xp.abs(y - P)


def relative(xp: Any, P: Array, y: Array, size: Array) -> Array:
    errors = absolute(xp, P, y)
    errors /= size
    return errors


def squared_log(xp: Any, P: Array, log_y: Array) -> Array:
    # Infinite at -1 and NaN below it, where scikit-learn raises.
    return squared(xp, xp.log1p(P), log_y)


def pinball(alpha: float, xp: Any, P: Array, y: Array) -> Array:
    residuals = y - P
    return xp.maximum(alpha * residuals, (alpha - 1) * residuals)


def targets_only(rows: FloatTargets) -> tuple[Array, ...]:
    return (rows.y,)


def target_sizes(rows: FloatTargets) -> tuple[Array, ...]:
    # In float32, too, scikit-learn's bound is that of float64.
    epsilon = constant(rows.xp, float(np.finfo(np.float64).eps), rows.y)
    return rows.y, rows.once("sizes", lambda: rows.xp.maximum(rows.xp.abs(rows.y), epsilon))


def log_targets(rows: FloatTargets) -> tuple[Array, ...]:
    return (rows.once("log1p", lambda: rows.xp.log1p(rows.y)),)


def mean_loss(
    loss: Kernel,
    columns: Callable[[FloatTargets], tuple[Array, ...]] = targets_only,
    root: bool = False,
    weigh_one: bool = False,
) -> Kernel:
    """The kernel of the mean of a loss, or of its root for each output; see `average_outputs`."""

    def kernel(targets: Targets, P: Array, multioutput: Any) -> Array:
        rows, P = float_targets(targets, P)
        errors = nan_unless_finite(rows.xp, rows.means(loss, P, *columns(rows)))
        return average_outputs(
            rows.xp, rows.xp.sqrt(errors) if root else errors, multioutput, weigh_one=weigh_one
        )

    return kernel


def mean_pinball(targets: Targets, P: Array, alpha: float, multioutput: Any) -> Array:
    return mean_loss(partial(pinball, check_level(alpha)))(targets, P, multioutput)


def check_level(alpha: float) -> float:
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1], got {alpha!r}.")
    return alpha


# Medians and maxima


def median_absolute(targets: Targets, P: Array, multioutput: Any) -> Array:
    rows, P = float_targets(targets, P)
    errors = absolute(rows.xp, P, rows.y)
    middle = medians(errors) if rows.weight is None else quantiles_of_rows(errors, rows.weight, 0.5)
    # A median may be finite although an error is not.
    middle = or_nan(middle, finite_settings(rows.xp, rows.xp.sum(errors, axis=1)))
    return average_outputs(rows.xp, middle, multioutput)


def max_absolute(targets: Targets, P: Array) -> Array:
    if targets.weight is not None:
        raise Unsupported("sample_weight is not supported by max_error")
    rows, P = float_targets(targets, P)
    require_one_output(rows, "max_error")
    return nan_unless_finite(rows.xp, rows.xp.max(absolute(rows.xp, P, rows.y), axis=1))


# Tweedie deviances


def poisson(xp: Any, P: Array, y: Array, numerator: Array) -> Array:
    # The logarithm is NaN for P < 0; for P = 0 the loss is infinite.
    losses = xp.log(numerator / P)
    losses *= y
    losses -= y
    losses += P
    losses *= 2
    return losses


def gamma(xp: Any, P: Array, y: Array) -> Array:
    losses = xp.log(P / y)
    losses += y / P
    losses -= 1
    losses *= 2
    return losses


def power_deviance(power: float, xp: Any, P: Array, y: Array, own: Array) -> Array:
    return 2 * (own - y * P ** (1 - power) / (1 - power) + P ** (2 - power) / (2 - power))


def deviance(rows: FloatTargets, power: float) -> tuple[Kernel, tuple[Array, ...]]:
    """The loss of a Tweedie deviance and its columns, NaN where scikit-learn refuses the targets."""
    if 0 < power < 1:
        raise ValueError(f"power must be <= 0 or >= 1, got {power!r}.")
    if power == 0:
        return squared, (rows.y,)
    if power == 1:
        # NaN for y < 0: the ratio of two negative numbers has a logarithm.
        return poisson, rows.once(
            ("deviance", 1), lambda: (rows.y, or_nan(nonzero(rows.xp, rows.y), rows.y >= 0))
        )
    if power == 2:
        return gamma, rows.once(("deviance", 2), lambda: (or_nan(rows.y, rows.y > 0),))
    columns = rows.once(("deviance", power), lambda: (rows.y, constant_part(rows.xp, rows.y, power)))
    return partial(power_deviance, power), columns


def nonzero(xp: Any, y: Array) -> Array:
    """Targets with 1 in place of 0, whose logarithm is multiplied by 0."""
    return xp.where(y == 0, constant(xp, 1.0, y), y)


def constant_part(xp: Any, y: Array, power: float) -> Array:
    """The part of a deviance that does not depend on predictions."""
    if power < 0:
        return xp.where(y > 0, y, constant(xp, 0.0, y)) ** (2 - power) / ((1 - power) * (2 - power))
    base = or_nan(y, y >= 0 if power < 2 else y > 0)
    return base ** (2 - power) / ((1 - power) * (2 - power))


def mean_deviance(rows: FloatTargets, P: Array, power: float) -> Array:
    loss, columns = deviance(rows, power)
    if power in (0, 1, 2):
        return nan_unless_finite(rows.xp, rows.means(loss, P, *columns))

    # Some powers of negative and of infinite predictions are finite.
    def allowed(xp: Any, P: Array, *columns: Array) -> Array:
        return or_nan(loss(xp, P, *columns), (P > 0) & xp.isfinite(P))

    return nan_unless_finite(rows.xp, rows.means(allowed, P, *columns))


def mean_tweedie(targets: Targets, P: Array, power: float) -> Array:
    rows, P = float_targets(targets, P)
    require_one_output(rows, "mean_tweedie_deviance")
    return mean_deviance(rows, P, power)


# Parts explained


def explained_share(
    xp: Any, lost: Array, spread: Array, multioutput: Any, force_finite: bool = True, named: bool = False
) -> Array:
    """1 - lost / spread of each output, (m,) or (m, q), made finite and averaged as in scikit-learn.

    `named` allows "variance_weighted".
    """
    lost = nan_unless_finite(xp, lost)
    scores = 1 - lost / spread
    if force_finite and not (isinstance(spread, np.ndarray) and spread.all()):
        ends = xp.where(lost == 0, constant(xp, 1.0, lost), constant(xp, 0.0, lost))
        scores = xp.where(spread != 0, scores, or_nan(ends, xp.isfinite(lost)))
    return average_outputs(xp, scores, multioutput, spread if named else None)


def nan_for_one_row(rows: FloatTargets, lost: Array) -> Array:
    """Losses; NaN for less than two rows, where R2 and D2 are not defined."""
    return lost if rows.y.shape[0] > 1 else lost * float("nan")


def r2(targets: Targets, P: Array, multioutput: Any, force_finite: bool) -> Array:
    rows, P = float_targets(targets, P)
    lost = nan_for_one_row(rows, rows.means(squared, P, rows.y))
    return explained_share(rows.xp, lost, rows.spread, multioutput, force_finite, named=True)


def explained_variance(targets: Targets, P: Array, multioutput: Any, force_finite: bool) -> Array:
    rows, P = float_targets(targets, P)
    shift = rows.means(lambda xp, P, y: y - P, P, rows.y)[:, None, ...]

    def off(xp: Any, P: Array, y: Array) -> Array:
        # In scikit-learn's order, which leaves exactly 0 for one row, or for equal residuals.
        residuals = y - P
        residuals -= shift
        residuals *= residuals
        return residuals

    lost = rows.means(off, P, rows.y)
    return explained_share(rows.xp, lost, rows.spread, multioutput, force_finite, named=True)


def d2_pinball(targets: Targets, P: Array, alpha: float, multioutput: Any) -> Array:
    rows, P = float_targets(targets, P)
    loss = partial(pinball, check_level(alpha))
    lost = nan_for_one_row(rows, rows.means(loss, P, rows.y))
    return explained_share(
        rows.xp, lost, rows.once(("pinball", alpha), lambda: pinball_of_quantile(rows, alpha)), multioutput
    )


def pinball_of_quantile(rows: FloatTargets, alpha: float) -> Array:
    """Pinball loss of the best constant prediction, (1,) or (1, q)."""
    weight = rows.weight
    if weight is None:
        weight = rows.xp.ones(rows.y.shape[:1], dtype=rows.y.dtype, device=device(rows.y))
    quantile = quantiles_of_rows(rows.y[None, ...], weight, alpha)
    return rows.means(partial(pinball, alpha), repeat_prediction(rows, quantile), rows.y)


def d2_tweedie(targets: Targets, P: Array, power: float) -> Array:
    rows, P = float_targets(targets, P)
    require_one_output(rows, "d2_tweedie_score")
    loss, columns = deviance(rows, power)
    spread = rows.once(
        ("spread", power), lambda: rows.means(loss, repeat_prediction(rows, rows.center[None, ...]), *columns)
    )
    # scikit-learn divides Python numbers, and raises for zero.
    return 1 - nan_for_one_row(rows, mean_deviance(rows, P, power)) / or_nan(spread, spread != 0)


def regression_metric(kernel: Kernel, *, rowwise: bool = True, **options: Any) -> MetricKernel:
    return MetricKernel(kernel, "numbers", options, rowwise)


UNIFORM: dict[str, Any] = {"multioutput": "uniform_average"}

REGRESSION_METRICS: dict[Callable[..., Any], MetricKernel] = {
    d2_absolute_error_score: regression_metric(partial(d2_pinball, alpha=0.5), rowwise=False, **UNIFORM),
    d2_pinball_score: regression_metric(d2_pinball, rowwise=False, alpha=0.5, **UNIFORM),
    d2_tweedie_score: regression_metric(d2_tweedie, rowwise=False, power=0),
    explained_variance_score: regression_metric(
        explained_variance, rowwise=False, force_finite=True, **UNIFORM
    ),
    max_error: regression_metric(max_absolute),
    mean_absolute_error: regression_metric(mean_loss(absolute), **UNIFORM),
    mean_absolute_percentage_error: regression_metric(mean_loss(relative, target_sizes), **UNIFORM),
    mean_gamma_deviance: regression_metric(partial(mean_tweedie, power=2)),
    mean_pinball_loss: regression_metric(mean_pinball, alpha=0.5, **UNIFORM),
    mean_poisson_deviance: regression_metric(partial(mean_tweedie, power=1)),
    mean_squared_error: regression_metric(mean_loss(squared), **UNIFORM),
    mean_squared_log_error: regression_metric(mean_loss(squared_log, log_targets), **UNIFORM),
    mean_tweedie_deviance: regression_metric(mean_tweedie, power=0),
    median_absolute_error: regression_metric(median_absolute, **UNIFORM),
    r2_score: regression_metric(r2, rowwise=False, force_finite=True, **UNIFORM),
    root_mean_squared_error: regression_metric(mean_loss(squared, root=True, weigh_one=True), **UNIFORM),
    root_mean_squared_log_error: regression_metric(mean_loss(squared_log, log_targets, root=True), **UNIFORM),
}
