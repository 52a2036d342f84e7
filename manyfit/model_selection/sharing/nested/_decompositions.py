"""Decompositions that compute all components, whatever number they keep."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.decomposition import PCA

from manyfit._compat import pca_solver
from manyfit.arrays import is_xp_array
from manyfit.folds import Unsupported
from manyfit.introspection.randomness import Sizes
from manyfit.model_selection.sharing.nested._rule import NestedRule, is_count, is_fraction, register_rule

_KEPT = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_")


class Components(NestedRule):
    """The first principal components, where the solver finds all of them.

    "full" and "covariance_eigh" do, and so does "auto" where it resolves to one of them. "arpack" and
    "randomized" find other digits for each number. "mle" asks for the number itself.

    Reference: sklearn.decomposition.PCA._fit_full (1.7 to 1.9).
    """

    serves, params = (PCA,), ("n_components",)

    def nests(self, step: Any, sizes: Sizes) -> bool:
        n, p, number = sizes.n_samples, sizes.n_features, step.n_components
        is_share = is_fraction(number) and number < 1
        if not (number is None or is_share or is_count(number, 0, n or 0)):
            return False
        if step.svd_solver == "auto":
            if sizes.sparse or n is None or p is None:
                return False
            return pca_solver(step, n, p) != "randomized"
        if step.svd_solver == "covariance_eigh":
            # With fewer rows than columns the noise is the mean of more variances than a fit keeps.
            return n is None or p is None or n >= p
        return bool(step.svd_solver == "full")

    def wide(self, step: Any, asked: Sequence[Any], X: Any) -> Any:
        numbers = {repr(one.n_components) for one in asked}
        if len(numbers) < 2 or is_xp_array(X) or not self._is_within(step, min(X.shape)):
            return None
        return clone(step).set_params(n_components=None).set_output(transform="default")

    def needs_output(self, wide: Any, X: Any) -> bool:
        solver, (n, p) = wide.svd_solver, X.shape  # "auto" with so many rows takes the covariance matrix
        return solver == "full" or (solver == "auto" and not (p <= 1_000 and n >= 10 * p))

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        return self._is_within(step, min(X.shape)) and _count(step, wide) is not None

    def _is_within(self, step: Any, most: int) -> bool:
        number = step.n_components
        return not isinstance(number, Integral) or is_count(number, 0, most)

    def narrow(self, step: Any, wide: Any, X: Any) -> None:
        super().narrow(step, wide, X)
        k, variances = _count(step, wide), wide.explained_variance_
        step.n_components_ = k
        step.noise_variance_ = np.mean(variances[k:]) if k < len(variances) else 0.0
        for name in _KEPT:
            setattr(step, name, np.array(getattr(wide, name)[:k], copy=True))

    def output(self, step: Any, output: Any) -> Any:
        if step._fit_svd_solver == "covariance_eigh":
            return None
        if output is None:
            raise Unsupported("the wide fit of PCA was made without an output")
        return output[:, : step.n_components_]


def _count(step: Any, wide: Any) -> Any:
    """The number of components that a fit keeps; None if rounding may decide it."""
    number = step.n_components
    if number is None:
        return wide.n_components_
    if isinstance(number, Integral):
        return number
    # scikit-learn sums in the precision of the data, and before 1.8 in float64.
    sums: list[NDArray[Any]] = [
        np.cumsum(wide.explained_variance_ratio_, dtype=dtype) for dtype in (None, np.float64)
    ]
    own, other = (np.searchsorted(one, number, side="right") + 1 for one in sums)
    return own if own == other else None


register_rule(Components())
