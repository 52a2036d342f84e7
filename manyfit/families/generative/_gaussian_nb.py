"""GaussianNB: the means and variances of one fit answer every smoothing and prior."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.naive_bayes import GaussianNB

from manyfit.families.generative._answers import (
    ClassAnswers,
    class_answers,
    fit_once,
    given_priors,
    joint_probabilities,
    labels_of_largest,
    one_fit_cost,
    rowwise,
    strict_arithmetic,
)
from manyfit.families.protocol import (
    Array,
    ClassSums,
    Cost,
    Family,
    Responses,
    Setting,
    Settings,
    Shape,
    register_family,
    require_number,
)
from manyfit.folds import (
    ClassedFold,
    ClassSpreads,
    Fold,
    SingleFold,
    SomeRows,
    Unsupported,
)

# Two joint log-likelihoods are told apart if they differ by so many times their rounding.
SAFETY = 16.0
# The smoothing of the one fit. It changes no digit of a variance, and a product with it is exact.
PROBE = 2.0**-900
SMALLEST = 1e-300
# Merged sums whose rounding may change a log-likelihood by more, as a part of its size, are not used.
MOST_DRIFT = 1e-6


class OneFit(NamedTuple):
    """The numbers of one fit of a fold, which serve all settings.

    `means` and `variances` are (n_classes, n_features); `epsilon` is part of the variances, and `largest` is
    the largest variance of a column. `error` bounds what a sum loses to rounding, relative to the sizes of
    its terms; 0 if no bit differs from scikit-learn's.
    """

    classes: Array
    prior: Array
    means: Array
    variances: Array
    epsilon: Any
    largest: Any
    error: float = 0.0


class Gaussians(NamedTuple):
    """One setting: `prior`, (n_classes,), and `variances`, (n_classes, n_features).

    `drift` bounds what the errors of means and variances do to a log-likelihood, see `_drift`.
    """

    prior: Array
    variances: Array
    setting: Setting
    drift: float = 0.0


class GaussianFamily(Family):
    """GaussianNB: ``var_smoothing`` adds a share of the largest variance of a column to all variances.

    Means and variances are merged from sums that all folds share, or are those of one fit. Labels are read
    from squared distances to the means, by one matrix product for each class and all settings. Rows where
    rounding could decide, and all rows where probabilities are scored, are computed as scikit-learn does,
    from its own fit: equal probabilities of several rows count, and the last bit makes them equal.

    Reference: sklearn.naive_bayes.GaussianNB (1.9): ``fit`` and ``_joint_log_likelihood``.
    """

    serves = (GaussianNB,)
    free = frozenset({"var_smoothing", "priors"})
    result: Literal["exact"] = "exact"
    reads = ClassSums(weights=True, device=False)

    def check(self, estimator: Any, settings: Settings) -> None:
        for setting in settings:
            require_number("var_smoothing", setting["var_smoothing"])

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        return one_fit_cost(len(settings), shape, fit=12.0, predict=6.0 * max(shape.n_classes, 1))

    def fit_many(
        self, estimator: Any, settings: Settings, folded: ClassedFold | SingleFold
    ) -> Iterator[ClassAnswers]:
        for i in range(folded.n_splits):
            merged, is_in_chunks = None, False
            if isinstance(folded, ClassedFold):
                merged = _merged_fit(folded.class_spreads(i), settings)
                is_in_chunks = folded.is_in_chunks
            exact = cache(partial(_exact_fit, estimator, folded.fold(i), is_in_chunks))
            one = exact() if merged is None else merged
            predictions = partial(_predictions, one, exact)
            yield class_answers(
                partial(_gaussians, one), settings, predictions, one.classes, int(merged is None)
            )


def _merged_fit(sums: ClassSpreads, settings: Settings) -> OneFit | None:
    """The fit from sums within classes; None where rounding is not known to be small."""
    classes, counts, means, squares, n_rows, of_all = sums
    if len(classes) < 2:
        raise Unsupported("the training rows have one class")
    if not (np.isfinite(means).all() and np.isfinite(squares).all() and np.isfinite(of_all).all()):
        raise Unsupported("X holds NaN or infinity")
    with strict_arithmetic():
        variances, largest = squares / counts[:, None], of_all.max()
    error = (n_rows + 8.0) * np.finfo(np.float64).eps
    one = OneFit(classes, counts / counts.sum(), means, variances, 0.0, largest, error)
    smallest = min(float(setting["var_smoothing"]) for setting in settings)
    least = variances + smallest * largest
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        known = _drift(one, least) < MOST_DRIFT
    return one if known and (least > SMALLEST).all() else None


def _drift(one: OneFit, variances: Array) -> float:
    """How much log-likelihoods may differ from scikit-learn's, relative to the sizes of their terms.

    Our sums and scikit-learn's each have a relative error of at most `error`. A mean m of values with
    standard deviation s is then off by ``error (|m| + s)``. A variance is off by `error` times itself, and by
    the square of the error of its mean.
    """
    if not one.error:
        return 0.0
    shifts = 2.0 * one.error * (np.abs(one.means) / np.sqrt(variances) + 1.0)
    of_mean = float(np.sqrt((shifts**2).sum(axis=1)).max())
    of_largest = 2.0 * one.error * (np.abs(one.means).max() / np.sqrt(one.largest) + 1.0)
    return 8.0 * (one.error + of_mean + of_mean**2 + of_largest**2)


def _exact_fit(estimator: Any, fold: Fold, is_in_chunks: bool) -> OneFit:
    """The fit of a fold, of which no bit differs from scikit-learn's."""
    if is_in_chunks:
        rows: Any = fold.rows("train")
        if rows.shape[1] > 1 and rows.is_sorted:
            return _fit_in_passes(rows, fold.y_train, fold.fit_weight)
        # NumPy adds up a single column in another order.
        if 2 * rows.shape[0] * rows.X.row_bytes > rows.X.source.memory:
            raise Unsupported("the training rows of a fold would need more than memory_limit")
    fitted = fit_once(estimator, {"var_smoothing": PROBE, "priors": None}, fold)
    with strict_arithmetic():
        # The fit has multiplied the largest variance with `PROBE`.
        small = not fitted.epsilon_ > SMALLEST
        largest = np.max(np.var(fold.X_train, axis=0)) if small else fitted.epsilon_ / PROBE
    return OneFit(fitted.classes_, fitted.class_prior_, fitted.theta_, fitted.var_, fitted.epsilon_, largest)


def _fit_in_passes(X: SomeRows, y: Array, weights: Array | None) -> OneFit:
    """A fit as scikit-learn's in two passes over rows in chunks: NumPy adds up rows one after the other.

    With weights rows are multiplied by them, and sums divided by those of each class. The variance of all
    rows, which comes first, has none.
    """
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise Unsupported("the training rows have one class")
    if weights is not None:
        # In the order of ``numpy.average``.
        counts = np.array([weights[codes == c][:, None].sum(axis=0)[0] for c in range(len(classes))])
        if np.isclose(counts, 0.0).any():
            raise Unsupported("a class has no weight in the training rows")
    sizes, means = np.array([len(y), *counts], dtype=np.float64)[:, None], None
    for _ in range(2):
        sums: list[Array | None] = [None] * len(sizes)
        with strict_arithmetic():
            for places, block in X.in_turn():
                rows = block.astype(np.float64)
                for c in range(-1, len(classes)):
                    own = rows if c < 0 else rows[codes[places] == c]
                    if means is not None:
                        own = own - means[c + 1]
                        own *= own
                    if weights is not None and c >= 0:
                        own = own * weights[places][codes[places] == c][:, None]
                    sums[c + 1] = _added(sums[c + 1], own)
            found = np.stack([one for one in sums if one is not None]) / sizes
        if means is None:
            means = found
    assert means is not None
    if not (np.isfinite(means).all() and np.isfinite(found).all()):
        raise Unsupported("X holds NaN or infinity")
    prior = sizes[1:, 0] / sizes[1:, 0].sum()
    return OneFit(classes, prior, means[1:], found[1:], 0.0, found[0].max())


def _added(total: Array | None, rows: Array) -> Array | None:
    """A sum to which rows are added one after the other."""
    if not len(rows):
        return total
    return np.asarray(np.add.reduce(rows if total is None else np.concatenate([total[None], rows]), axis=0))


def _gaussians(one: OneFit, setting: Setting) -> Gaussians:
    prior, variances = one.prior, one.variances.copy()
    if setting["priors"] is not None:
        prior = given_priors(setting["priors"], len(prior)).astype(prior.dtype)
    variances += setting["var_smoothing"] * one.largest
    if not ((prior > 0).all() and (variances > one.epsilon).all()):
        raise Unsupported("a class without weight, or a column without variance, makes scikit-learn warn")
    return Gaussians(prior, variances, setting, _drift(one, variances))


def _predictions(
    one: OneFit, exact: Callable[[], OneFit], X: Array, models: Sequence[Gaussians]
) -> Responses:
    def joint(X: Array, models: Sequence[Gaussians]) -> Array:
        """Joint log-likelihoods (m, n, n_classes), of which no bit differs from scikit-learn's."""
        if one.error:
            models = [_gaussians(exact(), model.setting) for model in models]
        of_rows = partial(_joint_log_likelihoods, exact().means, models)
        return rowwise(of_rows, X, axis=1)[0]

    return Responses(
        predict=lambda: _labels(one, joint, X, models),
        predict_proba=lambda: joint_probabilities(joint(X, models)),
    )


def _joint_log_likelihoods(means: Array, models: Sequence[Gaussians], X: Array) -> tuple[Array]:
    """Joint log-likelihoods (m, n, n_classes) in the order of scikit-learn's operations."""
    joint = []
    with strict_arithmetic():
        squares = [(X - mean) ** 2 for mean in means]
        for one in models:
            columns = []
            for prior, variances, square in zip(one.prior, one.variances, squares, strict=True):
                n_ij = -0.5 * np.sum(np.log(2.0 * np.pi * variances))
                n_ij = n_ij - 0.5 * np.sum(square / variances, axis=1)
                columns.append(np.log(prior) + n_ij)
            joint.append(np.stack(columns))
    return (np.stack(joint).transpose(0, 2, 1),)


def _labels(
    one: OneFit,
    joint: Callable[[Array, Sequence[Gaussians]], Array],
    X: Array,
    models: Sequence[Gaussians],
) -> Array:
    """Labels (m, n) of the most likely classes."""
    if one.means.dtype != np.float64 or X.dtype == np.float32:
        return labels_of_largest(joint(X, models), one.classes)
    densities = [_log_density(one.means[c], c, models) for c in range(len(one.classes))]
    scale = max(density.scale for density in densities)
    drift = max(model.drift for model in models)
    codes, near = rowwise(partial(_codes, densities, scale, drift), X, X.shape[1] + 4 * len(models))
    for j in map(int, np.flatnonzero(near.any(axis=0))):
        rows = np.flatnonzero(near[:, j])
        codes[rows, j] = np.argmax(
            joint(X.take(rows) if isinstance(X, SomeRows) else X[rows], [models[j]])[0], axis=1
        )
    return np.asarray(one.classes[codes.T])


class _LogDensity(NamedTuple):
    """The joint log-likelihood of one class as ``(x - mean)**2 @ weights + constant``, for m settings.

    `scale` bounds the sizes of the numbers that are added up to `constant`.
    """

    mean: Array
    weights: Array  # (n_features, m)
    constant: Array  # (m,)
    scale: float


def _log_density(mean: Array, c: int, models: Sequence[Gaussians]) -> _LogDensity:
    variances = np.stack([one.variances[c] for one in models], axis=1)
    logs, log_priors = np.log(2.0 * np.pi * variances), np.log([one.prior[c] for one in models])
    scale = float((np.abs(logs).sum(axis=0) + np.abs(log_priors)).max())
    return _LogDensity(mean, -0.5 / variances, log_priors - 0.5 * logs.sum(axis=0), scale)


def _codes(densities: Sequence[_LogDensity], scale: float, drift: float, X: Array) -> tuple[Array, Array]:
    """Positions of the most likely classes, (n, m), and where rounding could decide."""
    codes = np.zeros((X.shape[0], densities[0].constant.size), dtype=np.intp)
    best = second = np.full(codes.shape, -np.inf)
    for c, density in enumerate(densities):
        square = X - density.mean
        square *= square
        joint = square @ density.weights
        joint += density.constant
        np.copyto(codes, c, where=joint > best)
        lower = np.minimum(best, joint)
        second = np.maximum(second, lower, out=lower)
        best = np.maximum(best, joint, out=joint)
    lead = best - second
    rounding = np.abs(best, out=best)
    rounding += scale + X.shape[1] + 1.0
    rounding *= SAFETY * (X.shape[1] + 8) * np.finfo(np.float64).eps + drift
    return codes, lead <= rounding


register_family(GaussianFamily())
