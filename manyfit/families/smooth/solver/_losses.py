"""Losses of linear models: their derivatives for many columns of linear predictors at once.

A column is one setting on one split; a loss of several classes has one output for each. All losses are convex
in the linear predictor, so that a vanishing gradient is the optimum. They work in any namespace of the array
API. Rows are the last axis, so that operations on all columns run along contiguous memory.

The linear predictors of a block of rows take most of the device memory in a pass. So losses work in place,
with as few arrays as they can.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import expit as host_expit

from manyfit.arrays import array_namespace


class Loss(Protocol):
    """A loss of linear predictors and targets, one value a row."""

    @property
    def n_outputs(self) -> int:
        """Linear predictors that one setting has."""

    def gradient(self, Z: Any, T: Any) -> Any:
        """Derivative of the loss by the linear predictors `Z`, (n_outputs, m, n), in its memory or new.

        Targets `T`, (n_outputs, n), have the dtype and the device of `Z`.
        """

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        """Second derivatives D and P by the linear predictors `Z`; at a kink those of one side.

        D is by one output twice, not negative. By outputs k and l it is ``-P_k P_l``; zero if P is None. With
        P the loss depends only on differences of the outputs: the derivatives by k and all l sum to zero.
        """


@dataclass(frozen=True)
class HalfBinomial:
    """``log(1 + exp(z)) - t z`` with t in {0, 1}, as in LogisticRegression (1.9) with two classes."""

    n_outputs: int = 1

    def gradient(self, Z: Any, T: Any) -> Any:
        P = _tanh_expit(Z)
        P -= T[:, None, :]
        return P

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        return _binomial_variance(expit(Z)), None


@dataclass(frozen=True)
class HalfMultinomial:
    """``log(sum_k exp(z_k)) - sum_k t_k z_k`` with t the indicator of the class.

    As in LogisticRegression (1.9) with three classes or more.
    """

    n_outputs: int

    def gradient(self, Z: Any, T: Any) -> Any:
        P = softmax(Z)
        P -= T[:, None, :]
        return P

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        P = softmax(Z)
        return _binomial_variance(P), P


@dataclass(frozen=True)
class HalfTweedie:
    """Half the deviance of a Tweedie distribution with a log link, up to a constant.

    As in TweedieRegressor (1.9); ``power=1`` is Poisson, ``power=2`` Gamma. Convex for these and between.
    """

    power: float
    n_outputs: int = 1

    def gradient(self, Z: Any, T: Any) -> Any:
        xp, p = array_namespace(Z), self.power
        target = T[:, None, :]
        if p == 1:
            R = xp.exp(Z)
            R -= target
            return R
        if p == 2:
            Z *= -1.0
            R = xp.exp(Z)
            R *= target
            R *= -1.0
            R += 1.0
            return R
        R, E = _two_powers(Z, p)
        E *= target
        R -= E
        return R

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        xp, p = array_namespace(Z), self.power
        target = T[:, None, :]
        if p == 1:
            return xp.exp(Z), None
        if p == 2:
            Z *= -1.0
            D = xp.exp(Z)
            D *= target
            return D, None
        D, E = _two_powers(Z, p)
        D *= 2.0 - p
        E *= p - 1.0
        E *= target
        D += E
        return D, None


def _two_powers(Z: Any, power: float) -> tuple[Any, Any]:
    """``exp((2 - power) Z)``, and ``exp((1 - power) Z)`` in the memory of `Z`; 1 < power < 2."""
    xp, n = array_namespace(Z), Z.shape[-1]
    Z *= 2.0 - power
    R = xp.exp(Z)
    Z *= (1.0 - power) / (2.0 - power)
    part = max(1, -(-n // 8))  # no function of the array API writes in place
    for start in range(0, n, part):
        rows = slice(start, min(n, start + part))
        Z[..., rows] = xp.exp(Z[..., rows])
    return R, Z


@dataclass(frozen=True)
class SquaredHinge:
    """``max(0, 1 - t z)^2`` with t in {-1, 1}, as in LinearSVC (1.9)."""

    n_outputs: int = 1

    def gradient(self, Z: Any, T: Any) -> Any:
        target = T[:, None, :]
        Z *= target
        Z -= 1.0
        R = array_namespace(Z).where(Z > 0.0, 0.0, Z)  # NaN stays
        R *= 2.0
        R *= target
        return R

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        Z *= T[:, None, :]
        return _twice(Z < 1.0, Z.dtype), None


@dataclass(frozen=True)
class SquaredEpsilonInsensitive:
    """``max(0, |z - t| - epsilon)^2``, as in LinearSVR (1.9)."""

    epsilon: float
    n_outputs: int = 1

    def gradient(self, Z: Any, T: Any) -> Any:
        xp = array_namespace(Z)
        Z -= T[:, None, :]
        inside = xp.abs(Z) <= self.epsilon
        nearer = xp.sign(Z)
        nearer *= self.epsilon
        Z -= nearer
        del nearer
        R = xp.where(inside, 0.0, Z)  # NaN stays
        R *= 2.0
        return R

    def curvature(self, Z: Any, T: Any) -> tuple[Any, Any]:
        Z -= T[:, None, :]
        return _twice(array_namespace(Z).abs(Z) > self.epsilon, Z.dtype), None


def _binomial_variance(P: Any) -> Any:
    """``p (1 - p)``."""
    D = 1.0 - P
    D *= P
    return D


def _twice(flags: Any, dtype: Any) -> Any:
    """2 where flags are set, else 0."""
    out = array_namespace(flags).astype(flags, dtype)
    out *= 2.0
    return out


def expit(Z: Any) -> Any:
    """``1 / (1 + exp(-z))``; on the host in the memory of `Z`."""
    if isinstance(Z, np.ndarray):
        return host_expit(Z, out=Z)
    return 1.0 / (1.0 + array_namespace(Z).exp(-Z))


def _tanh_expit(Z: Any) -> Any:
    """`expit` up to the rounding of 1, which is enough for a sum; may overwrite `Z`.

    On a device it takes one array less.
    """
    if isinstance(Z, np.ndarray):
        return host_expit(Z, out=Z)
    Z *= 0.5
    P = array_namespace(Z).tanh(Z)
    P *= 0.5
    P += 0.5
    return P


def softmax(Z: Any, axis: int = 0) -> Any:
    """Probabilities along an axis, in the memory of `Z` where that can be."""
    xp = array_namespace(Z)
    Z -= xp.max(Z, axis=axis, keepdims=True)
    P = xp.exp(Z)
    P /= xp.sum(P, axis=axis, keepdims=True)
    return P
