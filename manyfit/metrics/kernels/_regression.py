"""Regression metrics of many settings at once, by scikit-learn's formulas, wherever predictions lie.

Each loss is written once, elementwise: ``loss(xp, P, *columns)`` of predictions of shape (m, b) or (m, b, q)
and of columns of shape (b,) or (b, q) that depend on the targets only. Where scikit-learn refuses targets or
predictions, a loss is NaN or infinite, by itself or by a mask, and so are the scores, which are then NaN; no
check waits for the device. So a score that overflows, of finite predictions, is NaN too.
"""

from collections.abc import Callable
from functools import partial, wraps
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
from manyfit.metrics.kernels._kernel import MetricKernel, Targets
from manyfit.metrics.kernels._quantiles import medians, quantiles_of_rows
from manyfit.metrics.kernels._regression_targets import (
    Rows,
    all_finite,
    constant,
    finite,
    only_output,
    or_nan,
    over_outputs,
    repeated,
    rows_of,
    squared,
)

Array = Any
Kernel = Callable[..., Array]


# Means of losses


def absolute(xp: Any, P: Array, y: Array) -> Array:
    return xp.abs(y - P)


def relative(xp: Any, P: Array, y: Array, size: Array) -> Array:
    errors = xp.abs(y - P)
    errors /= size
    return errors


def squared_log(xp: Any, P: Array, log_y: Array) -> Array:
    # Infinite at -1 and NaN below, where scikit-learn refuses.
    return squared(xp, xp.log1p(P), log_y)


def pinball(alpha: float, xp: Any, P: Array, y: Array) -> Array:
    residuals = y - P
    return xp.maximum(alpha * residuals, (alpha - 1) * residuals)


def targets_only(rows: Rows) -> tuple[Array, ...]:
    return (rows.y,)


def target_sizes(rows: Rows) -> tuple[Array, ...]:
    # scikit-learn's bound is that of float64 in float32 too.
    epsilon = constant(rows.xp, float(np.finfo(np.float64).eps), rows.y)
    return rows.y, rows.once("sizes", lambda: rows.xp.maximum(rows.xp.abs(rows.y), epsilon))


def log_targets(rows: Rows) -> tuple[Array, ...]:
    return (rows.once("log1p", lambda: rows.xp.log1p(rows.y)),)


def mean_of(
    loss: Kernel,
    columns: Callable[[Rows], tuple[Array, ...]] = targets_only,
    root: bool = False,
    weigh_one: bool = False,
) -> Kernel:
    """The kernel of the mean of a loss, or of its root for each output; see `over_outputs`."""

    def kernel(targets: Targets, P: Array, multioutput: Any) -> Array:
        rows, P = rows_of(targets, P)
        errors = finite(rows.xp, rows.means(loss, P, *columns(rows)))
        return over_outputs(
            rows.xp, rows.xp.sqrt(errors) if root else errors, multioutput, weigh_one=weigh_one
        )

    return kernel


def mean_pinball(targets: Targets, P: Array, alpha: float, multioutput: Any) -> Array:
    return mean_of(partial(pinball, level(alpha)))(targets, P, multioutput)


def level(alpha: float) -> float:
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1], got {alpha!r}.")
    return alpha


# Medians and maxima


def median_absolute(targets: Targets, P: Array, multioutput: Any) -> Array:
    rows, P = rows_of(targets, P)
    errors = absolute(rows.xp, P, rows.y)
    middle = medians(errors) if rows.weight is None else quantiles_of_rows(errors, rows.weight, 0.5)
    # A median may well be finite where some error is not.
    middle = or_nan(rows.xp, middle, all_finite(rows.xp, rows.xp.sum(errors, axis=1)))
    return over_outputs(rows.xp, middle, multioutput)


def largest(targets: Targets, P: Array) -> Array:
    if targets.weight is not None:
        raise Unsupported("sample_weight is not supported by max_error")
    rows, P = rows_of(targets, P)
    only_output(rows, "max_error")
    return finite(rows.xp, rows.xp.max(absolute(rows.xp, P, rows.y), axis=1))


# Tweedie deviances


def poisson(xp: Any, P: Array, y: Array, numerator: Array) -> Array:
    # NaN of negative predictions by the logarithm, and of P = 0 since nothing else is infinite there.
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


def deviance(rows: Rows, power: float) -> tuple[Kernel, tuple[Array, ...]]:
    """The loss of a Tweedie deviance and its columns: NaN where scikit-learn refuses these targets."""
    if 0 < power < 1:
        raise ValueError(f"power must be <= 0 or >= 1, got {power!r}.")
    if power == 0:
        return squared, (rows.y,)
    if power == 1:
        # The logarithm of a ratio of two negative numbers would be one.
        return poisson, rows.once(
            ("deviance", 1), lambda: (rows.y, or_nan(rows.xp, nonzero(rows.xp, rows.y), rows.y >= 0))
        )
    if power == 2:
        return gamma, rows.once(("deviance", 2), lambda: (or_nan(rows.xp, rows.y, rows.y > 0),))
    columns = rows.once(("deviance", power), lambda: (rows.y, own_part(rows.xp, rows.y, power)))
    return partial(power_deviance, power), columns


def nonzero(xp: Any, y: Array) -> Array:
    """Targets with 1 for 0: any logarithm will do that is multiplied by 0."""
    return xp.where(y == 0, constant(xp, 1.0, y), y)


def own_part(xp: Any, y: Array, power: float) -> Array:
    """The part of a deviance that predictions do not change."""
    if power < 0:
        return xp.where(y > 0, y, constant(xp, 0.0, y)) ** (2 - power) / ((1 - power) * (2 - power))
    base = or_nan(xp, y, y >= 0 if power < 2 else y > 0)
    return base ** (2 - power) / ((1 - power) * (2 - power))


def mean_deviance(rows: Rows, P: Array, power: float) -> Array:
    loss, columns = deviance(rows, power)
    if power in (0, 1, 2):
        return finite(rows.xp, rows.means(loss, P, *columns))

    # Some powers of negative and of infinite predictions are numbers.
    def allowed(xp: Any, P: Array, *columns: Array) -> Array:
        return or_nan(xp, loss(xp, P, *columns), (P > 0) & xp.isfinite(P))

    return finite(rows.xp, rows.means(allowed, P, *columns))


def mean_tweedie(targets: Targets, P: Array, power: float) -> Array:
    rows, P = rows_of(targets, P)
    only_output(rows, "mean_tweedie_deviance")
    return mean_deviance(rows, P, power)


# Parts explained


def explained(
    xp: Any, lost: Array, spread: Array, multioutput: Any, force_finite: bool = True, named: bool = False
) -> Array:
    """1 - lost / spread of each output, (m,) or (m, q), made finite and averaged as scikit-learn does.

    `named` says whether "variance_weighted" is allowed.
    """
    lost = finite(xp, lost)
    scores = 1 - lost / spread
    if force_finite:
        ends = xp.where(lost == 0, constant(xp, 1.0, lost), constant(xp, 0.0, lost))
        scores = xp.where(spread != 0, scores, or_nan(xp, ends, xp.isfinite(lost)))
    return over_outputs(xp, scores, multioutput, spread if named else None)


def defined(rows: Rows, lost: Array) -> Array:
    """Losses, NaN of less than two rows: nothing can be explained."""
    return lost if rows.y.shape[0] > 1 else lost * float("nan")


def r2(targets: Targets, P: Array, multioutput: Any, force_finite: bool) -> Array:
    rows, P = rows_of(targets, P)
    lost = defined(rows, rows.means(squared, P, rows.y))
    return explained(rows.xp, lost, rows.spread, multioutput, force_finite, named=True)


def explained_variance(targets: Targets, P: Array, multioutput: Any, force_finite: bool) -> Array:
    rows, P = rows_of(targets, P)
    shift = rows.means(lambda xp, P, y: y - P, P, rows.y)[:, None, ...]

    def off(xp: Any, P: Array, y: Array) -> Array:
        # In scikit-learn's order: of one row, or of residuals that are all the same, nothing is left.
        residuals = y - P
        residuals -= shift
        residuals *= residuals
        return residuals

    lost = rows.means(off, P, rows.y)
    return explained(rows.xp, lost, rows.spread, multioutput, force_finite, named=True)


def d2_pinball(targets: Targets, P: Array, alpha: float, multioutput: Any) -> Array:
    rows, P = rows_of(targets, P)
    loss = partial(pinball, level(alpha))
    lost = defined(rows, rows.means(loss, P, rows.y))
    return explained(
        rows.xp, lost, rows.once(("pinball", alpha), lambda: pinball_of_quantile(rows, alpha)), multioutput
    )


def pinball_of_quantile(rows: Rows, alpha: float) -> Array:
    """Pinball loss of the best constant prediction, of shape (1,) or (1, q)."""
    weight = rows.weight
    if weight is None:
        weight = rows.xp.ones(rows.y.shape[:1], dtype=rows.y.dtype, device=device(rows.y))
    quantile = quantiles_of_rows(rows.y[None, ...], weight, alpha)
    return rows.means(partial(pinball, alpha), repeated(rows, quantile), rows.y)


def d2_tweedie(targets: Targets, P: Array, power: float) -> Array:
    rows, P = rows_of(targets, P)
    only_output(rows, "d2_tweedie_score")
    loss, columns = deviance(rows, power)
    spread = rows.once(
        ("spread", power), lambda: rows.means(loss, repeated(rows, rows.center[None, ...]), *columns)
    )
    # scikit-learn divides numbers of Python, which zero makes raise.
    return 1 - defined(rows, mean_deviance(rows, P, power)) / or_nan(rows.xp, spread, spread != 0)


def quiet(kernel: Kernel) -> Kernel:
    """The kernel without NumPy's warnings of the numbers that become NaN."""

    @wraps(kernel)
    def quietly(*args: Any, **kwargs: Any) -> Array:
        with np.errstate(all="ignore"):
            return kernel(*args, **kwargs)

    return quietly


def numbers(kernel: Kernel, *, rowwise: bool = True, **options: Any) -> MetricKernel:
    return MetricKernel(quiet(kernel), "numbers", options, rowwise)


UNIFORM: dict[str, Any] = {"multioutput": "uniform_average"}

NUMBER_METRICS_MANY: dict[Callable[..., Any], MetricKernel] = {
    d2_absolute_error_score: numbers(partial(d2_pinball, alpha=0.5), rowwise=False, **UNIFORM),
    d2_pinball_score: numbers(d2_pinball, rowwise=False, alpha=0.5, **UNIFORM),
    d2_tweedie_score: numbers(d2_tweedie, rowwise=False, power=0),
    explained_variance_score: numbers(explained_variance, rowwise=False, force_finite=True, **UNIFORM),
    max_error: numbers(largest),
    mean_absolute_error: numbers(mean_of(absolute), **UNIFORM),
    mean_absolute_percentage_error: numbers(mean_of(relative, target_sizes), **UNIFORM),
    mean_gamma_deviance: numbers(partial(mean_tweedie, power=2)),
    mean_pinball_loss: numbers(mean_pinball, alpha=0.5, **UNIFORM),
    mean_poisson_deviance: numbers(partial(mean_tweedie, power=1)),
    mean_squared_error: numbers(mean_of(squared), **UNIFORM),
    mean_squared_log_error: numbers(mean_of(squared_log, log_targets), **UNIFORM),
    mean_tweedie_deviance: numbers(mean_tweedie, power=0),
    median_absolute_error: numbers(median_absolute, **UNIFORM),
    r2_score: numbers(r2, rowwise=False, force_finite=True, **UNIFORM),
    root_mean_squared_error: numbers(mean_of(squared, root=True, weigh_one=True), **UNIFORM),
    root_mean_squared_log_error: numbers(mean_of(squared_log, log_targets, root=True), **UNIFORM),
}
