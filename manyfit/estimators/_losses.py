"""Losses of linear models: their derivatives for many columns of linear predictors at once.

A column is one setting on one split; a loss of several classes has one output for each. All losses are
convex in the linear predictor, so that a vanishing gradient is the optimum. Any namespace of the array API.
Rows are the last axis: whatever is done to all columns alike is done along contiguous memory.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import expit as host_expit

from manyfit.arrays import array_namespace


class Loss(Protocol):
    """A loss of linear predictors and targets, one value a row.

    Attributes
    ----------
    n_outputs : int
        Linear predictors that one setting has: the number of classes, or 1.
    """

    @property
    def n_outputs(self) -> int:
        """Linear predictors that one setting has."""

    def gradient(self, Z: Any, T: Any) -> Any:
        """Derivative of the loss by the linear predictors.

        Parameters
        ----------
        Z : array of shape (n_outputs, m, n)
            Linear predictors of m columns; may be overwritten.
        T : array of shape (n_outputs, n)
            Targets, in the dtype and on the device of `Z`.

        Returns
        -------
        array of shape (n_outputs, m, n)
            In the memory of `Z`, or new.
        """

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        """Second derivatives by the linear predictors of each row; for a kink, those of one side.

        Returns
        -------
        D : array of the shape of `Z`
            By one output twice; not negative.
        P : array of the shape of `Z`, or None
            By outputs k and l: ``-P_k P_l``. None: zero. Where it is not, the loss depends on differences of
            the outputs alone: the derivatives by k and all l sum to zero.
        """


@dataclass(frozen=True)
class HalfBinomial:
    """``log(1 + exp(z)) - t z`` with t in {0, 1}.

    References
    ----------
    sklearn.linear_model.LogisticRegression (1.9), two classes.
    """

    n_outputs: int = 1

    def gradient(self, Z: Any, T: Any) -> Any:
        """See `Loss`."""
        P = expit(Z)
        P -= T[:, None, :]
        return P

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        """See `Loss`."""
        P = expit(Z)
        return P * (1.0 - P), None


@dataclass(frozen=True)
class HalfMultinomial:
    """``log(sum_k exp(z_k)) - sum_k t_k z_k`` with t the indicator of the class.

    References
    ----------
    sklearn.linear_model.LogisticRegression (1.9), three classes or more.
    """

    n_outputs: int

    def gradient(self, Z: Any, T: Any) -> Any:
        """See `Loss`."""
        P = softmax(Z)
        P -= T[:, None, :]
        return P

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        """See `Loss`."""
        P = softmax(Z)
        return P * (1.0 - P), P


@dataclass(frozen=True)
class HalfTweedie:
    """Half the deviance of a Tweedie distribution with a logarithmic link, up to a constant.

    ``power=1`` is Poisson, ``power=2`` Gamma, between them compound Poisson. Convex for these, and for no
    other power.

    References
    ----------
    sklearn.linear_model.TweedieRegressor, PoissonRegressor, GammaRegressor (1.9).
    """

    power: float
    n_outputs: int = 1

    def gradient(self, Z: Any, T: Any) -> Any:
        """See `Loss`."""
        xp, p = array_namespace(Z), self.power
        target = T[:, None, :]
        if p == 1:
            return xp.exp(Z) - target
        if p == 2:
            return 1.0 - target * xp.exp(-Z)
        return xp.exp((2.0 - p) * Z) - target * xp.exp((1.0 - p) * Z)

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        """See `Loss`."""
        xp, p = array_namespace(Z), self.power
        target = T[:, None, :]
        return (2.0 - p) * xp.exp((2.0 - p) * Z) + (p - 1.0) * target * xp.exp((1.0 - p) * Z), None


@dataclass(frozen=True)
class SquaredHinge:
    """``max(0, 1 - t z)^2`` with t in {-1, 1}.

    References
    ----------
    sklearn.svm.LinearSVC (1.9), ``loss="squared_hinge"``.
    """

    n_outputs: int = 1

    def gradient(self, Z: Any, T: Any) -> Any:
        """See `Loss`."""
        target = T[:, None, :]
        return 2.0 * _positive(target * Z - 1.0, -1.0) * target

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        """See `Loss`."""
        return _where_positive(1.0 - T[:, None, :] * Z, 2.0), None


@dataclass(frozen=True)
class SquaredEpsilonInsensitive:
    """``max(0, |z - t| - epsilon)^2``.

    References
    ----------
    sklearn.svm.LinearSVR (1.9), ``loss="squared_epsilon_insensitive"``.
    """

    epsilon: float
    n_outputs: int = 1

    def gradient(self, Z: Any, T: Any) -> Any:
        """See `Loss`."""
        xp = array_namespace(Z)
        Z = Z - T[:, None, :]
        return 2.0 * xp.sign(Z) * _positive(xp.abs(Z) - self.epsilon)

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        """See `Loss`."""
        return _where_positive(array_namespace(Z).abs(Z - T[:, None, :]) - self.epsilon, 2.0), None


def _positive(Z: Any, sign: float = 1.0) -> Any:
    """The positive part of ``sign Z``, times `sign`; NaN stays."""
    xp = array_namespace(Z)
    return xp.where(sign * Z < 0.0, xp.zeros_like(Z), Z)


def _where_positive(Z: Any, value: float) -> Any:
    """`value` where Z is above 0, else 0."""
    return value * array_namespace(Z).astype(Z > 0.0, Z.dtype)


def expit(Z: Any) -> Any:
    """``1 / (1 + exp(-z))``; on the host in the memory of `Z`."""
    if isinstance(Z, np.ndarray):
        return host_expit(Z, out=Z)
    return 1.0 / (1.0 + array_namespace(Z).exp(-Z))


def softmax(Z: Any, axis: int = 0) -> Any:
    """Probabilities along an axis, in the memory of `Z` where that can be."""
    xp = array_namespace(Z)
    Z -= xp.max(Z, axis=axis, keepdims=True)
    P = xp.exp(Z)
    P /= xp.sum(P, axis=axis, keepdims=True)
    return P
