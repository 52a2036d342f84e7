"""A second route in extended precision: penalised linear models at their optimum, by Newton's method.

scikit-learn's own solvers stop where their objective no longer falls, which far from the origin can be where
they start. Here a step is only taken if the objective falls, both are computed with 64 bits of significand on
centred columns of one size, and nothing stops before the gradient is rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.class_weight import compute_class_weight

from tests.differential._losses import (
    Loss,
    binomial,
    multinomial,
    squared_hinge,
    squared_insensitive,
    tweedie,
)
from tests.differential._newton import Objective, Squares, optimum
from tests.differential._oracle import Real

# The share of `tol` that a family's answers are held to; and, where that is less, the machine epsilons of the
# gradient at the start, but never more than `tol`.
CERTIFIED, CERTIFIED_ROUNDING = 1e-2, 1e3


def at_the_optimum(estimator: Any, aside: int | None = None) -> Any:
    """The estimator, or the pipeline with a last step, that stops nowhere but at the optimum.

    With `aside`, the seed of a direction, it stops where the gradient, measured as scikit-learn's solver
    measures it, is a hundredth of what `tol` asks, which is as near as a family that converges has to come.
    """
    if type(estimator) is OneVsRestClassifier:
        return estimator.set_params(estimator=at_the_optimum(estimator.estimator, aside))
    if type(estimator) is Pipeline:
        name, last = estimator.steps[-1]
        return estimator.set_params(**{name: at_the_optimum(last, aside)})
    cls = OPTIMAL.get(type(estimator))
    return estimator if cls is None else _as(cls, estimator, aside)


def _as(cls: type, estimator: Any, aside: int | None) -> Any:
    # An attribute of the class, since clones keep no other.
    new = type(cls.__name__, (cls,), {"aside": aside})(**estimator.get_params(deep=False))
    if hasattr(estimator, "_metadata_request"):
        new._metadata_request = estimator._metadata_request
    return new


def _largest(G: np.ndarray) -> Any:
    return np.abs(G).max()


class _Optimal:
    aside: int | None = None
    tol: float
    # Of gradients, as the solver measures them.
    norm: Callable[[np.ndarray], Any] = staticmethod(_largest)

    def _entries(self, at_start: np.ndarray, asked: float | None = None, k: int = 0) -> Any:
        """The gradient to stop at in the k-th problem, by the gradient at the start and the norm asked."""
        if self.aside is None:
            return 0.0
        asked = self.tol if asked is None else asked
        rounding = CERTIFIED_ROUNDING * np.finfo(np.float64).eps * self.norm(at_start)
        direction = np.random.default_rng([self.aside, k]).choice([-1.0, 1.0], at_start.shape)
        return min(asked, max(CERTIFIED * asked, rounding)) / self.norm(direction) * direction


class _OptimalTweedie(_Optimal):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""
        super().fit(X, y, sample_weight)
        y = np.asarray(y, dtype=Real)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        power = (
            1 if isinstance(self, PoissonRegressor) else 2 if isinstance(self, GammaRegressor) else self.power
        )
        start = np.log([np.average(y.astype(float), weights=weights)])
        coef, intercept = optimum(
            _dense(X), tweedie(y, power), weights, self.alpha, start, self.fit_intercept, self._entries
        )
        self.coef_ = coef[:, 0].astype(np.float64)
        self.intercept_ = float(intercept[0])
        return self


class OptimalPoisson(_OptimalTweedie, PoissonRegressor):
    """PoissonRegressor at its optimum."""


class OptimalGamma(_OptimalTweedie, GammaRegressor):
    """GammaRegressor at its optimum."""


class OptimalTweedie(_OptimalTweedie, TweedieRegressor):
    """TweedieRegressor with a logarithmic link at its optimum."""


class _OptimalMachine(_Optimal):
    """liblinear's objective: the intercept is penalised as the weight of one more feature."""

    norm = staticmethod(np.linalg.norm)

    def _one(
        self,
        X: Any,
        loss: Loss,
        weights: np.ndarray,
        k: int = 0,
        rarest: float = 1.0,
        objective: type[Objective] | None = None,
    ) -> tuple[np.ndarray, Any]:
        """Coefficients (p,) and intercept of the k-th problem; `rarest` is the share of its rarer class."""
        A, weights = _dense(X), np.maximum(weights, 0)  # rows that weigh less than nothing are left out too
        if self.fit_intercept:
            A = np.column_stack([A, np.full(len(A), Real(self.intercept_scaling))])

        def entries(at_start: np.ndarray) -> Any:
            return self._entries(at_start, self.tol * rarest * self.norm(at_start), k)

        penalty = 1.0 / (self.C * weights.sum())
        B, _ = optimum(A, loss, weights, penalty, np.zeros(1), False, entries, objective or Squares)
        coef, p = B[:, 0].astype(np.float64), A.shape[1] - self.fit_intercept
        return coef[:p], self.intercept_scaling * coef[p:].sum()


class OptimalLogistic(_OptimalMachine, LogisticRegression):
    """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""

    @property
    def norm(self) -> Any:  # type: ignore[override]
        """The length of a gradient for liblinear, else its largest entry."""
        return np.linalg.norm if self.solver == "liblinear" else _largest

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OptimalLogistic:
        """See LogisticRegression."""
        super().fit(X, y, sample_weight)
        index = np.searchsorted(self.classes_, y)
        weights = np.ones(len(index)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        of_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=np.asarray(y), sample_weight=weights
        )
        weights = weights * of_class[index]
        K = len(self.classes_)
        if "l1" in (self.penalty, {1: "l1"}.get(self.l1_ratio)):  # not smooth: as scikit-learn fits it
            return self
        if self.solver == "liblinear":
            counts = np.bincount(index[weights > 0], minlength=K)
            if counts.all():
                share = counts.min() / counts.sum()
                coef, intercept = self._one(X, binomial(index), weights, 0, share, Objective)
                self.coef_, self.intercept_ = coef[None], np.array([intercept])
            return self
        loss, start = (binomial(index), np.zeros(1)) if K == 2 else (multinomial(index, K), np.zeros(K))
        penalty = 1.0 / (self.C * weights.sum())
        coef, intercept = optimum(_dense(X), loss, weights, penalty, start, self.fit_intercept, self._entries)
        self.coef_ = coef.T.astype(np.float64)
        self.intercept_ = intercept.astype(np.float64)
        return self


class OptimalLinearSVC(_OptimalMachine, LinearSVC):
    """LinearSVC with the squared hinge loss at its optimum."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OptimalLinearSVC:
        """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""
        super().fit(X, y, sample_weight)
        index, K = np.searchsorted(self.classes_, y), len(self.classes_)
        weights = np.ones(len(index)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        of_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=np.asarray(y), sample_weight=weights
        )
        # Rows without weight do not count, and liblinear does not know of a class that has no others.
        counts = np.bincount(index[weights > 0], minlength=K)
        if not counts.all():
            return self
        found = []
        for k in range(K) if K > 2 else [1]:
            own = index == k
            # Of several classes the rest counts once.
            both = np.where(own, of_class[k], of_class[0] if K == 2 else 1.0)
            rarest = min(counts[k], counts.sum() - counts[k]) / counts.sum()
            found.append(self._one(X, squared_hinge(np.where(own, 1, -1)), weights * both, k, rarest))
        self.coef_ = np.array([coef for coef, _ in found])
        self.intercept_ = np.array([intercept for _, intercept in found])
        return self


class OptimalLinearSVR(_OptimalMachine, LinearSVR):
    """LinearSVR with the squared loss at its optimum."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OptimalLinearSVR:
        """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""
        super().fit(X, y, sample_weight)
        y = np.asarray(y, dtype=Real).ravel()
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.coef_, self.intercept_ = self._one(X, squared_insensitive(y, self.epsilon), weights)
        return self


OPTIMAL = {
    LogisticRegression: OptimalLogistic,
    PoissonRegressor: OptimalPoisson,
    GammaRegressor: OptimalGamma,
    TweedieRegressor: OptimalTweedie,
    LinearSVC: OptimalLinearSVC,
    LinearSVR: OptimalLinearSVR,
}


def _dense(X: Any) -> np.ndarray:
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(Real)
