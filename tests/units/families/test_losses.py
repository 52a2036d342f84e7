"""Losses: their derivatives are those of scikit-learn's losses, in any namespace of the array API."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_tweedie_deviance

from manyfit.families.smooth.solver._losses import (
    HalfBinomial,
    HalfMultinomial,
    HalfTweedie,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    softmax,
)

rng = np.random.default_rng(0)
N, M, K = 40, 3, 4
LABELS = rng.integers(0, K, N)
COUNTS = rng.poisson(3.0, N) + 1.0


SIGNS = LABELS % 2 * 2.0 - 1.0


def binomial(z, i):
    return log_loss([LABELS[i] % 2], [1 / (1 + np.exp(-z[0]))], labels=[0, 1])


def multinomial(z, i):
    return log_loss([LABELS[i]], softmax(z[None].copy(), axis=1), labels=range(K))


def tweedie(power):
    return lambda z, i: mean_tweedie_deviance([COUNTS[i]], [np.exp(z[0])], power=power) / 2


def squared_hinge(z, i):
    return max(0.0, 1.0 - SIGNS[i] * z[0]) ** 2


def epsilon_insensitive(z, i):
    return max(0.0, abs(z[0] - COUNTS[i]) - 0.5) ** 2


INDICATOR = (np.arange(K)[:, None] == LABELS).astype(float)
CASES = {
    "binomial": (HalfBinomial(), (LABELS % 2)[None].astype(float), binomial),
    "multinomial": (HalfMultinomial(K), INDICATOR, multinomial),
    "poisson": (HalfTweedie(1), COUNTS[None], tweedie(1)),
    "compound": (HalfTweedie(1.5), COUNTS[None], tweedie(1.5)),
    "gamma": (HalfTweedie(2), COUNTS[None], tweedie(2)),
    "squared hinge": (SquaredHinge(), SIGNS[None], squared_hinge),
    "epsilon insensitive": (SquaredEpsilonInsensitive(0.5), COUNTS[None], epsilon_insensitive),
}


@pytest.mark.invariant("Losses and their derivatives are scikit-learn's in every array namespace")
@pytest.mark.parametrize(("loss", "T", "value"), CASES.values(), ids=CASES)
def test_the_gradient_is_the_slope_of_the_loss(loss, T, value):
    Z, step = 3.0 * rng.normal(size=(loss.n_outputs, M, N)), 1e-6
    G = loss.gradient(Z.copy(), T)
    assert G.shape == Z.shape
    for i in range(0, N, 7):
        for k in range(loss.n_outputs):
            up, down = Z[:, 0, i].copy(), Z[:, 0, i].copy()
            up[k] += step
            down[k] -= step
            slope = (value(up, i) - value(down, i)) / (2 * step)
            assert G[k, 0, i] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.invariant("Losses and their derivatives are scikit-learn's in every array namespace")
@pytest.mark.parametrize(("loss", "T", "value"), CASES.values(), ids=CASES)
def test_the_curvature_is_the_slope_of_the_gradient(loss, T, value):
    Z, step = 3.0 * rng.normal(size=(loss.n_outputs, M, N)), 1e-6
    D, P = loss.curvature(Z.copy(), T)
    assert np.all(D >= 0)
    for j in range(loss.n_outputs):
        up, down = Z.copy(), Z.copy()
        up[j] += step
        down[j] -= step
        slope = (loss.gradient(up, T) - loss.gradient(down, T)) / (2 * step)
        for k in range(loss.n_outputs):
            expected = D[k] if k == j else -P[k] * P[j]
            np.testing.assert_allclose(slope[k], expected, atol=1e-6)


@pytest.mark.invariant("Losses and their derivatives are scikit-learn's in every array namespace")
@pytest.mark.parametrize(("loss", "T", "value"), CASES.values(), ids=CASES)
def test_any_namespace(loss, T, value):
    Z = rng.normal(size=(loss.n_outputs, M, N))
    device = strict.Device("device1")
    there = strict.asarray(Z, device=device, copy=True), strict.asarray(T, device=device, copy=True)
    for name in ("gradient", "curvature"):
        here = getattr(loss, name)(Z.copy(), T)
        got = getattr(loss, name)(*there)
        for a, b in zip(here, got, strict=True) if isinstance(here, tuple) else [(here, got)]:
            assert (a is None) == (b is None)
            if a is not None:
                assert b.device == device
                back = np.asarray(strict.from_dlpack(b, device=strict.Device("CPU_DEVICE")))
                np.testing.assert_allclose(back, a, rtol=1e-13, atol=1e-15)
        there = strict.asarray(Z, device=device, copy=True), there[1]
