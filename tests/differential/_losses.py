"""Losses of linear models in extended precision, with their derivatives by the linear predictor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.differential._oracle import Real

Derivatives = tuple[np.ndarray, np.ndarray, np.ndarray]
Loss = Callable[[np.ndarray], Derivatives]
"""From linear predictors (n, K): the loss of each row (n,), its gradient (n, K) and its Hessian (n, K, K)."""


def binomial(index: np.ndarray) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        # Mirrored so that the probability of the wrong class is what is computed: it may be tiny.
        side = 1 - 2 * index
        wrong = 1 / (1 + np.exp(-side * Z[:, 0]))
        value = np.logaddexp(0, side * Z[:, 0])
        return value, (side * wrong)[:, None], (wrong * (1 - wrong))[:, None, None]

    return loss


def multinomial(index: np.ndarray, K: int) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        E = np.exp(Z - Z[np.arange(len(Z)), index][:, None])
        P = E / E.sum(axis=1, keepdims=True)
        wrong = np.where(np.eye(K)[index], 0, E)
        R = wrong / E.sum(axis=1, keepdims=True)
        R[np.arange(len(Z)), index] = -R.sum(axis=1)
        return np.log1p(wrong.sum(axis=1)), R, P[:, :, None] * (np.eye(K) - P[:, None, :])

    return loss


def tweedie(y: np.ndarray, power: float) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        z = Z[:, 0]
        a, b = 2 - Real(power), 1 - Real(power)
        up = np.exp(a * z) / a if a else z
        down = y * np.exp(b * z) / b if b else y * z
        slope = np.exp(a * z) - y * np.exp(b * z)
        curvature = a * np.exp(a * z) - b * y * np.exp(b * z)
        return up - down, slope[:, None], curvature[:, None, None]

    return loss


def squared_hinge(side: np.ndarray) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        short = np.maximum(1 - side * Z[:, 0], 0)
        return short**2, (-2 * side * short)[:, None], np.where(short > 0, Real(2), 0)[:, None, None]

    return loss


def squared_insensitive(y: np.ndarray, epsilon: float) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        apart = Z[:, 0] - y
        over = np.maximum(np.abs(apart) - epsilon, 0)
        slope = 2 * np.sign(apart) * over
        return over**2, slope[:, None], np.where(over > 0, Real(2), 0)[:, None, None]

    return loss
