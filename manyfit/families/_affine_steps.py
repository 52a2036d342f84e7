"""Affine transformers as maps of the moments of a fold, without the data."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.preprocessing import StandardScaler

from manyfit._compat import pca_solver
from manyfit.families.protocol import AffineStep, Array, register_affine_step
from manyfit.folds import TransformedMoments, Unsupported

# Thresholds stand as a number, which counts for X in float64, and in machine epsilons of the dtype of X, in
# which scikit-learn computes. The larger one counts.
# The rounding of scikit-learn decides near ties. Within this relative distance of a decision the fold is left
# to it.
NEAR_TIE, NEAR_TIE_EPS = 1e-9, 32.0
# A principal subspace moves by about eps / gap. At this relative gap it is accurate to 1e-10, in float32 to
# 1e-4, which changes scores by 1e-6.
MIN_EIGENGAP, MIN_EIGENGAP_EPS = 1e-6, 1e4
# Whitening divides by the root of an eigenvalue; below this ratio to the largest it keeps too few digits.
MIN_WHITEN_RATIO, MIN_WHITEN_EPS = 1e-7, 1e3
# A standard deviation of so many roundings of the mean, or less, may be that of a constant.
DOUBTFUL_STD = 4.0
# f_regression loses so many machine epsilons of the raw moments of a feature.
F_ROUNDING_EPS = 64.0


def constant_features(view: TransformedMoments) -> Array:
    """Which features hold one value, exactly; raises `Unsupported` if rounding decides in scikit-learn."""
    moments = view.plain
    # For X in float32 variances are sums of rounded values.
    eps = max(moments.rows * np.finfo(np.float64).eps, view.eps)
    rounding = (DOUBTFUL_STD * eps * moments.x_mean) ** 2
    if view.columns is None:
        # A rotated constant is the rounding of the largest feature, and one that columns make up is theirs.
        largest = moments.variances.max(initial=0.0) if view.sizes is None else view.sizes
        rounding = np.maximum(rounding, _min_whiten_ratio(view) * largest)
    doubtful = np.flatnonzero(~(moments.variances > rounding))
    constant = np.zeros(view.n_features, dtype=bool)
    if doubtful.size:
        if view.columns is None:
            if not isinstance(view.linear, np.ndarray) or view.linear[:, doubtful].any():
                raise Unsupported("a rotated feature has (nearly) no variance")
            constant[doubtful] = True  # they read no column of X, as a bias
            return constant
        constant[doubtful] = view.is_constant(view.columns[doubtful])
        if not constant[doubtful].all():
            raise Unsupported("a feature is nearly constant: rounding decides")
    return constant


class ScalerStep(AffineStep):
    """StandardScaler (1.9): population variance; a constant feature is not scaled."""

    serves = (StandardScaler,)

    def apply(self, step: Any, view: TransformedMoments) -> TransformedMoments:
        moments = view.plain
        shift = moments.x_mean if step.with_mean else np.zeros(view.n_features)
        if not step.with_std:
            return view.scaled(shift, np.ones(view.n_features))
        return view.scaled(shift, np.where(constant_features(view), 1.0, np.sqrt(moments.variances)))


class VarianceThresholdStep(AffineStep):
    """VarianceThreshold.

    Reference: sklearn.feature_selection.VarianceThreshold (1.9); at threshold 0 the smaller of variance and
    range counts.
    """

    serves = (VarianceThreshold,)

    def apply(self, step: Any, view: TransformedMoments) -> TransformedMoments:
        variances = np.where(constant_features(view), 0.0, view.plain.variances)
        # Variances of float32 features are summed in float32 by scikit-learn.
        slack = max(NEAR_TIE, NEAR_TIE_EPS * np.sqrt(view.plain.rows) * view.eps) * max(step.threshold, 0.0)
        if np.any((np.abs(variances - step.threshold) <= slack) & (variances > 0)):
            raise Unsupported("a variance is within rounding of the threshold")
        keep = np.flatnonzero(variances > step.threshold)
        if not keep.size:
            raise Unsupported("no feature meets the variance threshold")
        return view.selected(keep)


class SelectKBestStep(AffineStep):
    """SelectKBest(f_regression): F grows with the squared correlation, which moments hold.

    Reference: sklearn.feature_selection.f_regression (1.9): its norms are differences of raw moments, so a
    feature far from the origin has a correlation known only to about ``eps (mean / std)^2``.
    """

    serves = (SelectKBest,)

    def check(self, step: Any) -> None:
        if step.score_func is not f_regression:
            raise Unsupported("SelectKBest is shared with f_regression only")
        if step.k != "all" and (isinstance(step.k, bool) or not isinstance(step.k, Integral) or step.k < 1):
            raise Unsupported(f"k={step.k!r} is neither 'all' nor a positive integer")

    def apply(self, step: Any, view: TransformedMoments) -> TransformedMoments:
        moments, p = view.plain, view.n_features
        if not view.single_target or moments.rows < 3:
            raise Unsupported("f_regression needs one target and three rows")
        if step.k == "all" or step.k == p:
            return view
        if step.k > p:
            raise Unsupported("k is larger than the number of features")
        if not moments.yy[0] > 0:
            raise Unsupported("y is constant")
        variances = moments.variances
        zero = (variances == 0) & (moments.x_mean == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            squared = moments.xy[:, 0] ** 2 / (variances * moments.weight) / moments.yy[0]
            doubt = NEAR_TIE + F_ROUNDING_EPS * view.eps * (1.0 + moments.x_mean**2 / variances)
        squared, doubt = np.where(zero, 0.0, squared), np.where(zero, 0.0, doubt)
        if not np.isfinite(doubt).all():
            raise Unsupported("a feature is constant away from 0: its F value is rounding")
        order = np.argsort(squared)
        chosen, left = order[-step.k :], order[: -step.k]
        low, high = squared - doubt * squared, squared + doubt * squared
        if not low[chosen].min() > high[left].max():
            raise Unsupported("the F values tie (nearly) at the cut")
        return view.selected(np.sort(chosen))


class PCAStep(AffineStep):
    """PCA (1.9) with a deterministic solver: eigenvectors of the centred scatter, nested in n_components.

    As in scikit-learn, the entry of largest magnitude of each component is positive.
    """

    serves = (PCA,)

    def check(self, step: Any) -> None:
        n = step.n_components
        whole = isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 1
        share = isinstance(n, Real) and not isinstance(n, Integral) and 0 < float(n) < 1
        if not (n is None or whole or share):
            raise Unsupported(f"n_components={n!r} is not served by moments")
        if step.svd_solver not in ("auto", "full", "covariance_eigh"):
            raise Unsupported(f"svd_solver={step.svd_solver!r} is not deterministic to rounding")

    def apply(self, step: Any, view: TransformedMoments) -> TransformedMoments:
        moments, p = view.plain, view.n_features
        n = int(moments.rows)
        most = min(n, p)
        if n < 2 or (isinstance(step.n_components, Integral) and int(step.n_components) > most):
            raise Unsupported("n_components is larger than the data allow")
        if pca_solver(step, n, p) == "randomized":
            raise Unsupported("svd_solver='auto' resolves to the randomized solver")
        spectrum = moments.spectrum
        values = spectrum.values
        k = _n_components(step.n_components, values[:most], max(NEAR_TIE, NEAR_TIE_EPS * view.eps))
        gap = max(MIN_EIGENGAP, MIN_EIGENGAP_EPS * view.eps)
        if k < p and values[k - 1] - values[k] <= gap * values[0]:
            raise Unsupported("eigenvalues at the cut (nearly) tie: the components are not determined")
        vectors = spectrum.oriented[:, :k]
        rotated = view.rotated(moments.x_mean, vectors, values[:k])
        if not step.whiten:
            return rotated
        if not values[k - 1] > _min_whiten_ratio(view) * values[0]:
            raise Unsupported("whitening would divide by an eigenvalue that is rounding")
        return rotated.scaled(np.zeros(k), np.sqrt(values[:k] / (n - 1)))


def _min_whiten_ratio(view: TransformedMoments) -> float:
    return max(MIN_WHITEN_RATIO, MIN_WHITEN_EPS * view.eps)


def _n_components(n_components: Any, values: Array, near: float) -> int:
    """The number of components that scikit-learn would keep."""
    if n_components is None:
        return len(values)
    if isinstance(n_components, Integral):
        return int(n_components)
    share = np.cumsum(values) / values.sum() if values.sum() > 0 else np.full(len(values), np.nan)
    if not np.all(np.abs(share - n_components) > near):
        raise Unsupported("n_components as a share of variance is within rounding of a step")
    return int(np.searchsorted(share, n_components, side="right")) + 1


register_affine_step(ScalerStep())
register_affine_step(VarianceThresholdStep())
register_affine_step(SelectKBestStep())
register_affine_step(PCAStep())
